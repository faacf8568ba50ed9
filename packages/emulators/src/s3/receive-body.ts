import { createHash, type Hash, randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { isSame } from '../protocol/tokens';
import { type Caller, scopeText, sha256Hex, signText } from './authenticate';
import type { S3Call } from './s3-call';
import { refuse } from './s3-errors';
import { type Checksum, type ChecksumAlgorithm, checksumAlgorithms, startChecksum } from './stored-version';

/** A complete body on disk, which matches its length, digests and signatures. */
export interface ReceivedBody {
  file: string;
  bytes: number;
  md5: Buffer;
  /** The checksum with the sender's algorithm. The default algorithm is CRC32. */
  checksum: Checksum;
}

/** S3's limit for one PUT. */
const bodyBytesMax = 5 * 2 ** 30;

/** Streams the body into a new file of `folder`. A refused body leaves no file. @throws S3Refusal */
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

/**
 * Returns the algorithm of the checksum: that of a checksum in the headers, of an announced trailer, or of a header
 * that names only the algorithm. Without any of these it is CRC32.
 */
function algorithmOf(headers: S3Call['headers']): ChecksumAlgorithm {
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

/** Receives a small XML body. The body goes through a file, so that the checks of `receiveBody` apply. */
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

const lineBytesMax = 8 * 1024;
const emptyHash = sha256Hex('');

/**
 * Yields the data of a body with Content-Encoding aws-chunked: for each chunk `<hex size>[;chunk-signature=…]` CRLF
 * `<data>` CRLF, then `0` CRLF and the trailers. Checks the signature of each signed chunk, and adds the trailers to
 * `trailers` by their lower-case names.
 *
 * @throws S3Refusal
 */
async function* readChunks(
  source: AsyncIterable<Buffer>,
  { caller, trailers }: { caller: Caller; trailers: Record<string, string> },
): AsyncGenerator<Buffer> {
  const signatures = caller.payloadHash.startsWith('STREAMING-AWS4-HMAC-SHA256-PAYLOAD') ? chainOf(caller) : null;
  const input = openInput(source);
  for (;;) {
    const [size = '', ...extensions] = (await input.line()).split(';');
    if (!/^[0-9a-f]{1,8}$/i.test(size)) refuse('IncompleteBody', 'The chunk has no size.');
    let left = Number.parseInt(size, 16);
    const hash = createHash('sha256');
    const isLast = left === 0;
    while (left > 0) {
      const bytes = await input.take(left);
      left -= bytes.length;
      if (signatures !== null) hash.update(bytes);
      yield bytes;
    }
    signatures?.check(hash, extensions.join(';'));
    if (isLast) break;
    if ((await input.line()) !== '') refuse('IncompleteBody', 'The chunk is longer than its size.');
  }
  await readTrailers(input, trailers);
  if (signatures !== null && caller.payloadHash.endsWith('-TRAILER')) signatures.checkTrailers(trailers);
}

async function readTrailers(input: Input, trailers: Record<string, string>): Promise<void> {
  for (let line = await input.line(); line !== ''; line = await input.line()) {
    const cut = line.indexOf(':');
    if (cut > 0) trailers[line.slice(0, cut).trim().toLowerCase()] = line.slice(cut + 1).trim();
  }
}

/** Returns the checks of signed chunks. The signature of each chunk includes the signature of the previous chunk. */
function chainOf({ scope, signature }: Caller): {
  check(hash: Hash, extension: string): void;
  checkTrailers(trailers: Record<string, string>): void;
} {
  let previous = signature;
  const compare = (expected: string, given: string | undefined): void => {
    if (given === undefined || !isSame(expected, given))
      refuse('SignatureDoesNotMatch', 'A chunk signature does not match.');
    previous = expected;
  };
  return {
    check: (hash, extension) => {
      const text = [
        'AWS4-HMAC-SHA256-PAYLOAD',
        scope.at,
        scopeText(scope),
        previous,
        emptyHash,
        hash.digest('hex'),
      ].join('\n');
      compare(signText(scope, text), /^chunk-signature=([0-9a-f]{64})$/.exec(extension)?.[1]);
    },
    checkTrailers: (trailers) => {
      const { 'x-amz-trailer-signature': given, ...signed } = trailers;
      const content = Object.entries(signed)
        .map(([name, value]) => `${name}:${value}\n`)
        .join('');
      const text = ['AWS4-HMAC-SHA256-TRAILER', scope.at, scopeText(scope), previous, sha256Hex(content)].join('\n');
      compare(signText(scope, text), given);
    },
  };
}

interface Input {
  /** Reads the text up to CRLF. Returns '' at the end of the body. */
  line(): Promise<string>;
  /** Reads one to `bytes` bytes. @throws S3Refusal at the end of the body */
  take(bytes: number): Promise<Buffer>;
}

function openInput(source: AsyncIterable<Buffer>): Input {
  const iterator = source[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  const more = async (): Promise<boolean> => {
    const { value, done } = await iterator.next();
    if (done === true) return false;
    held = held.length === 0 ? value : Buffer.concat([held, value]);
    return true;
  };
  return {
    line: async () => {
      for (;;) {
        const end = held.indexOf('\r\n');
        if (end >= 0) {
          const line = held.subarray(0, end).toString('latin1');
          held = held.subarray(end + 2);
          return line;
        }
        if (held.length > lineBytesMax) refuse('IncompleteBody', 'A line of the chunked body is too long.');
        if (!(await more())) {
          if (held.length > 0) refuse('IncompleteBody', 'The chunked body ends within a line.');
          return '';
        }
      }
    },
    take: async (bytes) => {
      while (held.length === 0)
        if (!(await more())) refuse('IncompleteBody', 'You did not provide the number of bytes specified.');
      const taken = held.subarray(0, bytes);
      held = held.subarray(taken.length);
      return taken;
    },
  };
}
