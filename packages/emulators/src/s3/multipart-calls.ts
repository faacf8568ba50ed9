import { createHash } from 'node:crypto';
import type { Part, Upload } from './bucket-store';
import { assertKey, metadataOf, versionHeader } from './object-calls';
import { isHeldBy, retentionFor } from './object-lock';
import { receiveBody, receiveText } from './receive-body';
import { type BucketCall, emptyAnswer, isoNow, type S3Reply, xmlAnswer } from './s3-call';
import { element, elementsOf, refuse, textOf, xmlDocument } from './s3-errors';
import { checksumElement, checksumHeader, compositeChecksum } from './stored-version';

const partBytesMin = 5 * 2 ** 20;
const partNumberMax = 10_000;

export function startUpload({ world, call, bucket }: BucketCall): S3Reply {
  assertKey(call.key);
  const upload = world.uploadsOf(call.bucket).start({
    key: call.key,
    startedAt: isoNow(world),
    contentType: call.headers['content-type'] ?? 'binary/octet-stream',
    metadata: metadataOf(call),
    hasChecksum: call.headers['x-amz-checksum-algorithm'] !== undefined,
    retention: retentionFor(call, bucket.settings, world.clock.now()),
    isOnLegalHold: isHeldBy(call, bucket.settings),
  });
  const fields = [element('Bucket', call.bucket), element('Key', call.key), element('UploadId', upload.id)];
  return xmlAnswer(xmlDocument(element('InitiateMultipartUploadResult', fields)));
}

const uploadOf = ({ world, call }: BucketCall): Upload =>
  world.uploadsOf(call.bucket).get(call.query.get('uploadId') ?? '', call.key);

export async function putPart(bucketCall: BucketCall): Promise<S3Reply> {
  const { world, call, caller, bucket } = bucketCall;
  const upload = uploadOf(bucketCall);
  const number = Number(call.query.get('partNumber'));
  if (!Number.isInteger(number) || number < 1 || number > partNumberMax)
    refuse('InvalidArgument', 'Part number must be an integer between 1 and 10000, inclusive');
  const body = await receiveBody(call, caller, bucket.incoming);
  world.uploadsOf(call.bucket).putPart(upload, number, body, isoNow(world));
  return emptyAnswer(200, { etag: `"${body.md5.toString('hex')}"`, ...checksumHeader(body.checksum) });
}

export async function completeUpload(bucketCall: BucketCall): Promise<S3Reply> {
  const { world, call, caller, bucket } = bucketCall;
  const text = await receiveText(call, caller, bucket.incoming);
  const upload = uploadOf(bucketCall);
  const uploads = world.uploadsOf(call.bucket);
  const parts = chosenParts(text, uploads.parts(upload));
  const etag = `${createHash('md5')
    .update(Buffer.concat(parts.map(({ md5 }) => Buffer.from(md5, 'hex'))))
    .digest('hex')}-${parts.length}`;
  const algorithm = parts[0]?.checksum.algorithm ?? 'crc32';
  const checksum = upload.hasChecksum
    ? compositeChecksum(
        algorithm,
        parts.map((part) => part.checksum.value),
      )
    : null;
  const { key, contentType, metadata, retention, isOnLegalHold } = upload;
  const version = bucket.add(
    {
      key,
      isDeleteMarker: false,
      etag,
      modifiedAt: isoNow(world),
      contentType,
      metadata,
      checksum,
      retention,
      isOnLegalHold,
    },
    parts,
  );
  uploads.end(upload);
  world.record(caller, { op: 'put', bucket: call.bucket, key, id: version.versionId, detail: `${parts.length} parts` });
  const fields = [element('Bucket', call.bucket), element('Key', key), element('ETag', `"${etag}"`)];
  const sum =
    checksum === null
      ? []
      : [element(checksumElement(checksum.algorithm), checksum.value), element('ChecksumType', 'COMPOSITE')];
  return xmlAnswer(xmlDocument(element('CompleteMultipartUploadResult', [...fields, ...sum])), versionHeader(version));
}

/** Returns the parts that the client lists. @throws S3Refusal when a listed part was not uploaded or differs */
function chosenParts(text: string, stored: readonly Part[]): Part[] {
  const wanted = elementsOf(text, 'Part');
  if (wanted.length === 0) refuse('MalformedXML', 'You must specify at least one part');
  let last = 0;
  return wanted.map((xml, index) => {
    const number = Number(textOf(xml, 'PartNumber'));
    if (number <= last) refuse('InvalidPartOrder', 'The list of parts was not in ascending order.');
    last = number;
    const part = stored.find((candidate) => candidate.number === number);
    if (part === undefined || textOf(xml, 'ETag')?.replaceAll('"', '') !== part.md5)
      refuse('InvalidPart', 'One or more of the specified parts could not be found.');
    const claimed = textOf(xml, checksumElement(part.checksum.algorithm));
    if (claimed !== undefined && claimed !== part.checksum.value)
      refuse('InvalidPart', 'A checksum of a part does not match.');
    if (part.bytes < partBytesMin && index < wanted.length - 1)
      refuse('EntityTooSmall', 'Your proposed upload is smaller than the minimum allowed size');
    return part;
  });
}

export function abortUpload(bucketCall: BucketCall): S3Reply {
  bucketCall.world.uploadsOf(bucketCall.call.bucket).end(uploadOf(bucketCall));
  return emptyAnswer(204);
}

export function listParts(bucketCall: BucketCall): S3Reply {
  const upload = uploadOf(bucketCall);
  const parts = bucketCall.world.uploadsOf(bucketCall.call.bucket).parts(upload);
  const items = parts.map(({ number, bytes, md5, modifiedAt, checksum }) =>
    element('Part', [
      element('PartNumber', number),
      element('LastModified', modifiedAt),
      element('ETag', `"${md5}"`),
      element('Size', bytes),
      element(checksumElement(checksum.algorithm), checksum.value),
    ]),
  );
  const { bucket, key } = bucketCall.call;
  const fields = [
    element('Bucket', bucket),
    element('Key', key),
    element('UploadId', upload.id),
    element('IsTruncated', false),
  ];
  return xmlAnswer(xmlDocument(element('ListPartsResult', [...fields, ...items])));
}

export function listUploads({ world, call }: BucketCall): S3Reply {
  const prefix = call.query.get('prefix') ?? '';
  const uploads = world
    .uploadsOf(call.bucket)
    .list()
    .filter(({ key }) => key.startsWith(prefix))
    .map(({ key, id, startedAt }) =>
      element('Upload', [element('Key', key), element('UploadId', id), element('Initiated', startedAt)]),
    );
  const fields = [element('Bucket', call.bucket), element('Prefix', prefix), element('IsTruncated', false)];
  return xmlAnswer(xmlDocument(element('ListMultipartUploadsResult', [...fields, ...uploads])));
}
