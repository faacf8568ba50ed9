import { assertMayDestroy } from './object-lock';
import { receiveText } from './receive-body';
import { emptyAnswer, type S3Reply, xmlAnswer } from './s3-call';
import { refuse, S3Refusal } from './s3-errors';
import { type BucketCall, isoNow } from './s3-world';
import { element, elementsOf, textOf, type Xml, xmlDocument } from './xml';

interface Deleted {
  versionId: string;
  isMarker: boolean;
}

/**
 * A named version is destroyed unless it is locked. Without a version name, a delete marker hides the object, and
 * nothing is destroyed. @throws S3Refusal
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

/** Deletes many objects at once. The answer has a result for each. */
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
