import { assertMayUse, type Caller } from './authenticate';
import * as buckets from './bucket-calls';
import { deleteObject, deleteObjects } from './delete-calls';
import { listObjects, listVersions } from './list-calls';
import * as lock from './lock-calls';
import * as multipart from './multipart-calls';
import { getObject, putObject } from './object-calls';
import type { S3Call, S3Reply } from './s3-call';
import { refuse } from './s3-errors';
import type { Answer, S3World } from './s3-world';

/** Answers by method and by the sub-resource in the query. '' is the resource itself. */
type Table = Readonly<Record<string, Answer | undefined>>;

const bucketTable: Table = {
  'HEAD ': buckets.headBucket,
  'DELETE ': buckets.deleteBucket,
  'GET ': listObjects,
  'GET versions': listVersions,
  'GET uploads': multipart.listUploads,
  'GET location': buckets.getLocation,
  'GET versioning': buckets.getVersioning,
  'PUT versioning': buckets.putVersioning,
  'GET object-lock': lock.getLockConfiguration,
  'PUT object-lock': lock.putLockConfiguration,
  'POST delete': deleteObjects,
};

const objectTable: Table = {
  'GET ': getObject,
  'HEAD ': getObject,
  'PUT ': putObject,
  'DELETE ': deleteObject,
  'GET retention': lock.getRetention,
  'PUT retention': lock.putRetention,
  'GET legal-hold': lock.getLegalHold,
  'PUT legal-hold': lock.putLegalHold,
  'POST uploads': multipart.startUpload,
  'PUT uploadId': multipart.putPart,
  'POST uploadId': multipart.completeUpload,
  'DELETE uploadId': multipart.abortUpload,
  'GET uploadId': multipart.listParts,
};

const subResources = [
  'versions',
  'uploads',
  'location',
  'versioning',
  'object-lock',
  'delete',
  'retention',
  'legal-hold',
  'uploadId',
] as const;
/** S3 has these, but the emulator does not. They must not be treated as the resource itself. */
const unknownResources = [
  'acl',
  'attributes',
  'cors',
  'encryption',
  'lifecycle',
  'policy',
  'select',
  'tagging',
  'torrent',
  'website',
];

/** @throws S3Refusal */
export async function answerS3(world: S3World, call: S3Call, caller: Caller): Promise<S3Reply> {
  if (call.bucket === '')
    return call.method === 'GET'
      ? buckets.listBuckets(world, caller)
      : refuse('MethodNotAllowed', 'Only GET is known here.');
  assertMayUse(caller, call.bucket);
  const isRead = call.method === 'GET' || call.method === 'HEAD';
  if (!isRead && caller.account.mayWrite === false && call.method !== 'DELETE') refuse('AccessDenied', 'Access Denied');
  if (isRead && caller.account.mayRead === false && call.key !== '') refuse('AccessDenied', 'Access Denied');
  const unknown = unknownResources.find((name) => call.query.has(name));
  if (unknown !== undefined) refuse('NotImplemented', `${unknown} is not known here.`);
  const sub = subResources.find((name) => call.query.has(name)) ?? '';
  if (call.key === '' && call.method === 'PUT' && sub === '') return buckets.createBucket(world, call, caller);
  const answer = (call.key === '' ? bucketTable : objectTable)[`${call.method} ${sub}`];
  const bucket = world.buckets.get(call.bucket);
  if (answer === undefined) refuse('NotImplemented', 'This call is not known here.');
  return await answer({ world, call, caller, bucket });
}
