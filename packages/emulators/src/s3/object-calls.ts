import { createReadStream, rmSync } from 'node:fs';
import {
  assertHasLock,
  assertMayDestroy,
  assertMayRetain,
  isHeldBy,
  parseRetention,
  retentionFor,
} from './object-lock';
import { receiveBody, receiveText } from './receive-body';
import { type BucketCall, emptyAnswer, isoNow, type S3Call, type S3Reply, xmlAnswer } from './s3-call';
import { element, elementsOf, refuse, S3Refusal, textOf, type Xml, xmlDocument } from './s3-errors';
import { checksumHeader, retentionModes, type StoredVersion } from './stored-version';

const readBytes = 256 * 1024;

/** Yields the bytes from `start` to `end`, both included, of several consecutive files. */
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
 * Checks that a write under a lock has a digest in its headers or trailer. AWS requires the digest even if the lock
 * comes from the bucket's default retention, and a signed body is not enough.
 *
 * @throws S3Refusal
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

/** Finds the version that the call names, or the newest version. @throws S3Refusal */
function findVersion({ call, bucket }: BucketCall): StoredVersion {
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

/** Answers GET and HEAD of an object or of one range. */
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

/** Parses a Range header. Returns null for the whole object, also for a header that S3 ignores. @throws S3Refusal */
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

interface Deleted {
  versionId: string;
  isMarker: boolean;
}

/**
 * Deletes a key. A named version is removed unless it is locked. Without a version id, a delete marker hides the object
 * and nothing is removed, unless the bucket has no versioning.
 *
 * @throws S3Refusal
 */
function deleteKey({ world, call, caller, bucket }: BucketCall, key: string, versionId: string | null): Deleted | null {
  if (caller.account.mayDelete === false) refuse('AccessDenied', 'Access Denied');
  const versions = bucket.versionsOf(key);
  const named = versionId ?? (bucket.settings.hasVersions ? null : 'null');
  if (named === null) {
    const marker = bucket.add(
      {
        key,
        isDeleteMarker: true,
        etag: '',
        modifiedAt: isoNow(world),
        contentType: '',
        metadata: {},
        checksum: null,
        retention: null,
        isOnLegalHold: false,
      },
      [],
    );
    world.record(caller, { op: 'hide', bucket: call.bucket, key, id: marker.versionId });
    return { versionId: marker.versionId, isMarker: true };
  }
  const version = versions.find((candidate) => candidate.versionId === named);
  if (version === undefined) return null;
  assertMayDestroy(version, call, world.lockAnswer, world.clock.now());
  bucket.remove(version);
  world.record(caller, { op: 'delete', bucket: call.bucket, key, id: named });
  return { versionId: named, isMarker: version.isDeleteMarker };
}

export function deleteObject(bucketCall: BucketCall): S3Reply {
  const deleted = deleteKey(bucketCall, bucketCall.call.key, bucketCall.call.query.get('versionId'));
  return emptyAnswer(204, {
    ...(deleted === null || deleted.versionId === 'null' ? {} : { 'x-amz-version-id': deleted.versionId }),
    ...(deleted?.isMarker === true ? { 'x-amz-delete-marker': 'true' } : {}),
  });
}

const keysMax = 1000;

/** Deletes several objects. The answer has a result for each object, but in quiet mode only for failed deletions. */
export async function deleteObjects(bucketCall: BucketCall): Promise<S3Reply> {
  const text = await receiveText(bucketCall.call, bucketCall.caller, bucketCall.bucket.incoming);
  const objects = elementsOf(text, 'Object');
  if (objects.length === 0 || objects.length > keysMax) refuse('MalformedXML', 'Between 1 and 1000 keys are needed.');
  const isQuiet = textOf(text, 'Quiet') === 'true';
  const results = objects.flatMap((object) => {
    const key = textOf(object, 'Key') ?? refuse('MalformedXML', 'An object without a key.');
    const result = deleteOne(bucketCall, key, textOf(object, 'VersionId') ?? null);
    return isQuiet && result.isDeleted ? [] : [result.xml];
  });
  return xmlAnswer(xmlDocument(element('DeleteResult', results)));
}

function deleteOne(bucketCall: BucketCall, key: string, versionId: string | null): { isDeleted: boolean; xml: Xml } {
  const named = versionId === null ? [] : [element('VersionId', versionId)];
  try {
    const deleted = deleteKey(bucketCall, key, versionId);
    const marker =
      deleted?.isMarker === true
        ? [element('DeleteMarker', true), element('DeleteMarkerVersionId', deleted.versionId)]
        : [];
    return { isDeleted: true, xml: element('Deleted', [element('Key', key), ...named, ...marker]) };
  } catch (error) {
    if (!(error instanceof S3Refusal)) throw error;
    const said = [element('Code', error.code), element('Message', error.message)];
    return { isDeleted: false, xml: element('Error', [element('Key', key), ...named, ...said]) };
  }
}

export function getRetention(bucketCall: BucketCall): S3Reply {
  assertHasLock(bucketCall.bucket.settings);
  const { retention } = findVersion(bucketCall);
  if (retention === null)
    refuse('NoSuchObjectLockConfiguration', 'The specified object does not have a ObjectLock configuration');
  return xmlAnswer(
    xmlDocument(element('Retention', [element('Mode', retention.mode), element('RetainUntilDate', retention.until)])),
  );
}

export async function putRetention(bucketCall: BucketCall): Promise<S3Reply> {
  const { world, call, caller, bucket } = bucketCall;
  assertHasLock(bucket.settings);
  const text = await receiveText(call, caller, bucket.incoming);
  const version = findVersion(bucketCall);
  const nowMs = world.clock.now();
  const retention = parseRetention(textOf(text, 'Mode'), textOf(text, 'RetainUntilDate'), nowMs);
  if (world.lockAnswer !== 'ignored') assertMayRetain(version, retention, call, nowMs);
  bucket.replace({ ...version, retention });
  world.record(caller, {
    op: 'retain',
    bucket: call.bucket,
    key: call.key,
    id: version.versionId,
    detail: `${retention.mode} ${retention.until}`,
  });
  return emptyAnswer(200);
}

export function getLegalHold(bucketCall: BucketCall): S3Reply {
  assertHasLock(bucketCall.bucket.settings);
  return xmlAnswer(
    xmlDocument(element('LegalHold', [element('Status', findVersion(bucketCall).isOnLegalHold ? 'ON' : 'OFF')])),
  );
}

export async function putLegalHold(bucketCall: BucketCall): Promise<S3Reply> {
  const { call, caller, bucket } = bucketCall;
  assertHasLock(bucket.settings);
  const text = await receiveText(call, caller, bucket.incoming);
  bucket.replace({ ...findVersion(bucketCall), isOnLegalHold: textOf(text, 'Status') === 'ON' });
  return emptyAnswer(200);
}

export function getLockConfiguration({ bucket }: BucketCall): S3Reply {
  const { hasObjectLock, defaultRetention: rule } = bucket.settings;
  if (!hasObjectLock)
    refuse('ObjectLockConfigurationNotFoundError', 'Object Lock configuration does not exist for this bucket');
  const inRule =
    rule === null
      ? []
      : [element('Rule', [element('DefaultRetention', [element('Mode', rule.mode), element('Days', rule.days)])])];
  return xmlAnswer(
    xmlDocument(element('ObjectLockConfiguration', [element('ObjectLockEnabled', 'Enabled'), ...inRule])),
  );
}

export async function putLockConfiguration({ call, caller, bucket }: BucketCall): Promise<S3Reply> {
  const text = await receiveText(call, caller, bucket.incoming);
  if (!bucket.settings.hasVersions)
    refuse('InvalidBucketState', 'Versioning must be enabled on the bucket to apply Object Lock.');
  const mode = retentionModes.find((name) => name === textOf(text, 'Mode'));
  const days = Number(textOf(text, 'Days') ?? Number(textOf(text, 'Years') ?? 0) * 365);
  const defaultRetention = mode === undefined ? null : { mode, days };
  if (defaultRetention !== null && !(days >= 1))
    refuse('InvalidArgument', 'Default retention period must be a positive integer value.');
  bucket.change({ ...bucket.settings, hasObjectLock: true, defaultRetention });
  return emptyAnswer(200);
}
