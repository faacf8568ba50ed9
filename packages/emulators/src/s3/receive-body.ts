import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Caller } from './authenticate';
import { readChunks } from './aws-chunked';
import { type Checksum, type ChecksumAlgorithm, checksumAlgorithms, startChecksum } from './checksums';
import type { S3Call } from './s3-call';
import { refuse } from './s3-errors';

/** A complete body on disk, which matched everything that its sender said about it. */
export interface ReceivedBody {
  file: string;
  bytes: number;
  md5: Buffer;
  /** The checksum with the sender's algorithm, or with CRC32 when the sender used none. */
  checksum: Checksum;
}

/** S3's limit of one PUT. */
const bodyBytesMax = 5 * 2 ** 30;

/** Streams the body into a new file of `folder`. When the body is refused, no file stays. @throws S3Refusal */
export async function receiveBody(call: S3Call, caller: Caller, folder: string): Promise<ReceivedBody> {
  const file = path.join(folder, randomUUID());
  const handle = await open(file, 'wx', 0o600);
  try {
    return { file, ...(await writeBody(call, caller, handle)) };
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

async function writeBody(call: S3Call, caller: Caller, handle: FileHandle): Promise<Omit<ReceivedBody, 'file'>> {
  const { headers } = call;
  const trailers: Record<string, string> = {};
  const isChunked = caller.payloadHash.startsWith('STREAMING-');
  const source = isChunked ? readChunks(call.request, { caller, trailers }) : call.request;
  const isHashSigned = /^[0-9a-f]{64}$/.test(caller.payloadHash);
  const algorithm = algorithmOf(headers);
  const [md5, sha256, checksum] = [createHash('md5'), createHash('sha256'), startChecksum(algorithm)];
  let bytes = 0;
  for await (const piece of source) {
    if (!Buffer.isBuffer(piece)) throw new Error('the body is not bytes');
    bytes += piece.length;
    if (bytes > bodyBytesMax) refuse('EntityTooLarge', 'Your proposed upload exceeds the maximum allowed size.');
    md5.update(piece);
    checksum.update(piece);
    if (isHashSigned) sha256.update(piece);
    await handle.writeFile(piece);
  }
  const length = headers[isChunked ? 'x-amz-decoded-content-length' : 'content-length'];
  if (length === undefined) refuse('MissingContentLength', 'You must provide the Content-Length HTTP header.');
  if (Number(length) !== bytes)
    refuse('IncompleteBody', 'You did not provide the number of bytes specified by the Content-Length HTTP header.');
  if (isHashSigned && sha256.digest('hex') !== caller.payloadHash)
    refuse('XAmzContentSHA256Mismatch', 'The provided x-amz-content-sha256 does not match.');
  const received = { bytes, md5: md5.digest(), checksum: { algorithm, value: checksum.digest().toString('base64') } };
  compareWithClaims({ ...headers, ...trailers }, received);
  return received;
}

function compareWithClaims(
  claims: Readonly<Record<string, string | undefined>>,
  { md5, checksum }: Omit<ReceivedBody, 'file'>,
): void {
  const wanted = claims['content-md5'];
  if (wanted !== undefined && wanted !== md5.toString('base64'))
    refuse('BadDigest', 'The Content-MD5 you specified did not match what we received.');
  const claimed = claims[`x-amz-checksum-${checksum.algorithm}`];
  if (claimed === undefined && claims['x-amz-trailer'] !== undefined)
    refuse('IncompleteBody', 'The announced trailer did not come.');
  if (claimed !== undefined && claimed !== checksum.value)
    refuse('BadDigest', `The ${checksum.algorithm.toUpperCase()} you specified did not match the calculated checksum.`);
}

/** The algorithm named by a checksum itself, by the trailer that will carry one, or only by the request for one. */
export function algorithmOf(headers: S3Call['headers']): ChecksumAlgorithm {
  if (headers['x-amz-checksum-crc64nvme'] !== undefined || headers['x-amz-trailer'] === 'x-amz-checksum-crc64nvme')
    refuse('NotImplemented', 'CRC64NVME is not known here.');
  const wish = headers['x-amz-sdk-checksum-algorithm'] ?? headers['x-amz-checksum-algorithm'];
  const isMeant = (algorithm: ChecksumAlgorithm): boolean =>
    headers[`x-amz-checksum-${algorithm}`] !== undefined ||
    headers['x-amz-trailer'] === `x-amz-checksum-${algorithm}` ||
    wish?.toLowerCase() === algorithm;
  return checksumAlgorithms.find(isMeant) ?? 'crc32';
}

const textBytesMax = 2 * 2 ** 20;

/** A small body of XML. It is written to a file first, and checked in the same way. */
export async function receiveText(call: S3Call, caller: Caller, folder: string): Promise<string> {
  const body = await receiveBody(call, caller, folder);
  try {
    if (body.bytes > textBytesMax) refuse('MalformedXML', 'The XML is too large.');
    const handle = await open(body.file, 'r');
    try {
      return await handle.readFile('utf8');
    } finally {
      await handle.close();
    }
  } finally {
    await rm(body.file, { force: true });
  }
}
