import { createReadStream, rmSync } from 'node:fs';
import { checksumHeader } from './checksums';
import { isHeldBy, retentionFor } from './object-lock';
import { receiveBody } from './receive-body';
import { emptyAnswer, type S3Call, type S3Reply } from './s3-call';
import { refuse } from './s3-errors';
import { type BucketCall, isoNow } from './s3-world';
import type { StoredVersion } from './stored-version';

const readBytes = 256 * 1024;

/** Bytes `start` to `end`, both included, of several files that are read as one. */
async function* readPieces(
  files: readonly { file: string; bytes: number }[],
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  let offset = 0;
  for (const { file, bytes } of files) {
    const [first, last] = [Math.max(0, start - offset), Math.min(bytes - 1, end - offset)];
    offset += bytes;
    if (first > last) continue;
    for await (const piece of createReadStream(file, { start: first, end: last, highWaterMark: readBytes })) {
      if (!Buffer.isBuffer(piece)) throw new Error('a file is not bytes');
      yield piece;
    }
  }
}

const keyBytesMax = 1024;

export const metadataOf = ({ headers }: S3Call): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith('x-amz-meta-') && value !== undefined ? [[name, value]] : [],
    ),
  );

export const assertKey = (key: string): void => {
  if (Buffer.byteLength(key) > keyBytesMax) refuse('KeyTooLongError', 'Your key is too long');
};

export async function putObject({ world, call, caller, bucket }: BucketCall): Promise<S3Reply> {
  assertKey(call.key);
  if (call.headers['x-amz-copy-source'] !== undefined) refuse('NotImplemented', 'Copies are not known here.');
  const nowMs = world.clock.now();
  const retention = retentionFor(call, bucket.settings, nowMs);
  const isOnLegalHold = isHeldBy(call, bucket.settings);
  if (retention !== null) assertHasDigest(call);
  const body = await receiveBody(call, caller, bucket.incoming);
  if (call.headers['if-none-match'] === '*' && isThere(bucket.versionsOf(call.key)[0])) {
    rmSync(body.file);
    refuse('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold');
  }
  const version = bucket.add(
    {
      key: call.key,
      isDeleteMarker: false,
      etag: body.md5.toString('hex'),
      modifiedAt: isoNow(world),
      contentType: call.headers['content-type'] ?? 'binary/octet-stream',
      metadata: metadataOf(call),
      checksum: body.checksum,
      retention,
      isOnLegalHold,
    },
    [body],
  );
  world.record(caller, { op: 'put', bucket: call.bucket, key: call.key, id: version.versionId });
  return emptyAnswer(200, { etag: `"${version.etag}"`, ...versionHeader(version), ...checksumHeader(body.checksum) });
}

/**
 * AWS requires this for everything that is written under a lock, also when the lock comes from the bucket's own rule. A
 * signed body is not enough. @throws S3Refusal
 */
function assertHasDigest({ headers }: S3Call): void {
  const names = [...Object.keys(headers), headers['x-amz-trailer'] ?? ''];
  if (!names.some((name) => name === 'content-md5' || /^x-amz-checksum-(?:crc|sha)/.test(name)))
    refuse(
      'InvalidRequest',
      'Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters',
    );
}

const isThere = (version: StoredVersion | undefined): boolean => version !== undefined && !version.isDeleteMarker;

export const versionHeader = ({ versionId }: StoredVersion): Record<string, string> =>
  versionId === 'null' ? {} : { 'x-amz-version-id': versionId };

/** The version that the call names, or else the newest. @throws S3Refusal */
export function findVersion({ call, bucket }: BucketCall): StoredVersion {
  const id = call.query.get('versionId');
  const versions = bucket.versionsOf(call.key);
  const version = id === null ? versions[0] : versions.find(({ versionId }) => versionId === id);
  if (version === undefined)
    return id === null
      ? refuse('NoSuchKey', 'The specified key does not exist.')
      : refuse('NoSuchVersion', 'The specified version does not exist.');
  if (version.isDeleteMarker)
    return id === null
      ? refuse('NoSuchKey', 'The specified key does not exist.')
      : refuse('MethodNotAllowed', 'A delete marker has no content.');
  return version;
}

/** GET and HEAD: the whole object, or one range of it. */
export function getObject(bucketCall: BucketCall): S3Reply {
  const { call, bucket } = bucketCall;
  const version = findVersion(bucketCall);
  const range = rangeOf(call.headers['range'], version.bytes);
  const { start, end } = range ?? { start: 0, end: version.bytes - 1 };
  const headers = {
    ...headersOf(version),
    ...(range === null
      ? checksumHeaderOf(version, call)
      : { 'content-range': `bytes ${start}-${end}/${version.bytes}` }),
    'content-length': String(end - start + 1),
  };
  const status = range === null ? 200 : 206;
  if (call.method === 'HEAD') return emptyAnswer(status, headers);
  const files = version.pieces.map((piece) => ({ file: bucket.fileOf(piece), bytes: piece.bytes }));
  return { status, headers, body: { kind: 'file', stream: readPieces(files, start, end), bytes: end - start + 1 } };
}

const headersOf = (version: StoredVersion): Record<string, string> => ({
  etag: `"${version.etag}"`,
  'last-modified': new Date(version.modifiedAt).toUTCString(),
  'content-type': version.contentType,
  'accept-ranges': 'bytes',
  ...version.metadata,
  ...versionHeader(version),
  ...(version.retention === null
    ? {}
    : {
        'x-amz-object-lock-mode': version.retention.mode,
        'x-amz-object-lock-retain-until-date': version.retention.until,
      }),
  ...(version.isOnLegalHold ? { 'x-amz-object-lock-legal-hold': 'ON' } : {}),
});

const checksumHeaderOf = ({ checksum }: StoredVersion, { headers }: S3Call): Record<string, string> =>
  headers['x-amz-checksum-mode']?.toUpperCase() === 'ENABLED' && checksum !== null ? checksumHeader(checksum) : {};

/** Null for the whole object. A header that S3 cannot read is ignored. @throws S3Refusal */
function rangeOf(header: string | undefined, bytes: number): { start: number; end: number } | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (match === null) return null;
  const [, from = '', to = ''] = match;
  if (from === '' && to === '') return null;
  const start = from === '' ? Math.max(0, bytes - Number(to)) : Number(from);
  const end = from === '' || to === '' ? bytes - 1 : Math.min(bytes - 1, Number(to));
  if (start > end) refuse('InvalidRange', 'The requested range is not satisfiable');
  return { start, end };
}
