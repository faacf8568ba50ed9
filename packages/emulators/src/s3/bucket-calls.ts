import { assertMayUse, type Caller } from './authenticate';
import { receiveText } from './receive-body';
import { emptyAnswer, type S3Call, type S3Reply, xmlAnswer } from './s3-call';
import { refuse } from './s3-errors';
import { type BucketCall, isoNow, type S3World } from './s3-world';
import { element, textOf, xmlDocument } from './xml';

export function listBuckets(world: S3World, caller: Caller): S3Reply {
  const { buckets } = caller.account;
  const seen = world.buckets.names().filter((name) => buckets.includes('*') || buckets.includes(name));
  const items = seen.map((name) =>
    element('Bucket', [element('Name', name), element('CreationDate', world.buckets.get(name).settings.createdAt)]),
  );
  const owner = element('Owner', [element('ID', caller.account.accessKeyId)]);
  return xmlAnswer(xmlDocument(element('ListAllMyBucketsResult', [owner, element('Buckets', items)])));
}

export function createBucket(world: S3World, call: S3Call, caller: Caller): S3Reply {
  assertMayUse(caller, call.bucket);
  const hasObjectLock = call.headers['x-amz-bucket-object-lock-enabled'] === 'true';
  world.buckets.create({
    name: call.bucket,
    createdAt: isoNow(world),
    hasVersions: hasObjectLock,
    hasObjectLock,
    defaultRetention: null,
  });
  return emptyAnswer(200, { location: `/${call.bucket}` });
}

export function deleteBucket({ world, call, caller }: BucketCall): S3Reply {
  if (caller.account.mayDelete === false) refuse('AccessDenied', 'Access Denied');
  world.buckets.remove(call.bucket);
  return emptyAnswer(204);
}

export const headBucket = ({ world }: BucketCall): S3Reply => emptyAnswer(200, { 'x-amz-bucket-region': world.region });

export const getLocation = ({ world }: BucketCall): S3Reply =>
  xmlAnswer(xmlDocument(element('LocationConstraint', world.region === 'us-east-1' ? '' : world.region)));

export const getVersioning = ({ bucket }: BucketCall): S3Reply =>
  xmlAnswer(
    xmlDocument(element('VersioningConfiguration', bucket.settings.hasVersions ? [element('Status', 'Enabled')] : [])),
  );

export async function putVersioning({ call, caller, bucket }: BucketCall): Promise<S3Reply> {
  const status = textOf(await receiveText(call, caller, bucket.incoming), 'Status');
  if (bucket.settings.hasObjectLock && status !== 'Enabled')
    refuse(
      'InvalidBucketState',
      'An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.',
    );
  if (status !== 'Enabled') refuse('NotImplemented', 'Versions can be switched on, and not off again.');
  bucket.change({ ...bucket.settings, hasVersions: true });
  return emptyAnswer(200);
}
