import { assertMayUse, type Caller } from './authenticate';
import { receiveText } from './receive-body';
import { type BucketCall, emptyAnswer, isoNow, type S3Call, type S3Reply, type S3World, xmlAnswer } from './s3-call';
import { element, refuse, textOf, type Xml, xmlDocument } from './s3-errors';
import type { StoredVersion } from './stored-version';

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

const pageMax = 1000;

interface Page<Item> {
  items: Item[];
  /** The beginnings of keys up to and including the delimiter, in order. */
  commonPrefixes: string[];
  /** The position after which the next page begins, or null after the last page. */
  next: { key: string; item: Item | null } | null;
}

/**
 * Returns a page of the items that `itemsOf` returns for each key. Keys with the same common prefix count as one item.
 * `isBehind` tells whether an item comes after the position at which the page begins.
 */
function pageOf<Item>(
  { call, bucket }: BucketCall,
  isBehind: (key: string, item: Item | null) => boolean,
  itemsOf: (key: string) => readonly Item[],
): Page<Item> {
  const { query } = call;
  const [prefix, delimiter] = [query.get('prefix') ?? '', query.get('delimiter') ?? ''];
  const wanted = Number(query.get('max-keys') ?? pageMax);
  if (!Number.isInteger(wanted) || wanted < 0) refuse('InvalidArgument', 'max-keys is no number.');
  const page: Page<Item> = { items: [], commonPrefixes: [], next: null };
  const max = Math.min(pageMax, wanted);
  let last: Page<Item>['next'] = null;
  for (const key of bucket.keys(prefix)) {
    const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    const common = cut < 0 ? null : key.slice(0, cut + delimiter.length);
    if (common !== null && (page.commonPrefixes.at(-1) === common || !isBehind(common, null))) continue;
    const items: readonly (Item | null)[] = common === null ? itemsOf(key) : itemsOf(key).length > 0 ? [null] : [];
    for (const item of items) {
      if (!isBehind(common ?? key, item)) continue;
      if (page.items.length + page.commonPrefixes.length >= max) return { ...page, next: max === 0 ? null : last };
      if (item === null) page.commonPrefixes.push(common ?? key);
      else page.items.push(item);
      last = { key: common ?? key, item };
    }
  }
  return page;
}

const encoded = ({ call }: BucketCall, text: string): string =>
  call.query.get('encoding-type') === 'url' ? encodeURIComponent(text).replaceAll('%2F', '/') : text;

const commonFields = (bucketCall: BucketCall, isTruncated: boolean): Xml[] => {
  const { query } = bucketCall.call;
  return [
    element('Name', bucketCall.call.bucket),
    element('Prefix', encoded(bucketCall, query.get('prefix') ?? '')),
    ...(query.has('delimiter') ? [element('Delimiter', query.get('delimiter') ?? '')] : []),
    ...(query.get('encoding-type') === 'url' ? [element('EncodingType', 'url')] : []),
    element('MaxKeys', query.get('max-keys') ?? String(pageMax)),
    element('IsTruncated', isTruncated),
  ];
};

const prefixFields = (bucketCall: BucketCall, prefixes: readonly string[]): Xml[] =>
  prefixes.map((prefix) => element('CommonPrefixes', [element('Prefix', encoded(bucketCall, prefix))]));

const itemFields = (bucketCall: BucketCall, version: StoredVersion): Xml[] => [
  element('Key', encoded(bucketCall, version.key)),
  element('LastModified', version.modifiedAt),
  ...(version.isDeleteMarker
    ? []
    : [element('ETag', `"${version.etag}"`), element('Size', version.bytes), element('StorageClass', 'STANDARD')]),
];

/** Answers ListObjectsV2, and ListObjects (version 1) for clients that send a marker. */
export function listObjects(bucketCall: BucketCall): S3Reply {
  const { query } = bucketCall.call;
  const isV2 = query.get('list-type') === '2';
  const token = query.get('continuation-token');
  const after =
    token === null ? (query.get(isV2 ? 'start-after' : 'marker') ?? '') : Buffer.from(token, 'base64url').toString();
  const page = pageOf<StoredVersion>(
    bucketCall,
    (key) => Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0,
    (key) =>
      bucketCall.bucket
        .versionsOf(key)
        .slice(0, 1)
        .filter(({ isDeleteMarker }) => !isDeleteMarker),
  );
  const next = page.next?.key ?? null;
  const nextFields =
    next === null
      ? []
      : [
          isV2
            ? element('NextContinuationToken', Buffer.from(next).toString('base64url'))
            : element('NextMarker', encoded(bucketCall, next)),
        ];
  const count = isV2 ? [element('KeyCount', page.items.length + page.commonPrefixes.length)] : [];
  const contents = page.items.map((version) => element('Contents', itemFields(bucketCall, version)));
  const fields = [
    ...commonFields(bucketCall, next !== null),
    ...count,
    ...nextFields,
    ...contents,
    ...prefixFields(bucketCall, page.commonPrefixes),
  ];
  return xmlAnswer(xmlDocument(element('ListBucketResult', fields)));
}

/** Answers ListObjectVersions. The newest version of a key comes first. */
export function listVersions(bucketCall: BucketCall): S3Reply {
  const { query } = bucketCall.call;
  const [afterKey, afterId] = [query.get('key-marker') ?? '', query.get('version-id-marker')];
  const afterSeq = bucketCall.bucket.versionsOf(afterKey).find(({ versionId }) => versionId === afterId)?.seq;
  const isBehind = (key: string, version: StoredVersion | null): boolean =>
    key === afterKey && version !== null && afterSeq !== undefined
      ? version.seq < afterSeq
      : Buffer.compare(Buffer.from(key), Buffer.from(afterKey)) > 0;
  const page = pageOf<StoredVersion>(bucketCall, isBehind, (key) => bucketCall.bucket.versionsOf(key));
  const next =
    page.next === null
      ? []
      : [element('NextKeyMarker', encoded(bucketCall, page.next.key)), ...versionMarker(page.next.item)];
  const items = page.items.map((version) => {
    const isLatest = bucketCall.bucket.versionsOf(version.key)[0]?.seq === version.seq;
    const which = [element('VersionId', version.versionId), element('IsLatest', isLatest)];
    return element(version.isDeleteMarker ? 'DeleteMarker' : 'Version', [...itemFields(bucketCall, version), ...which]);
  });
  const fields = [
    ...commonFields(bucketCall, page.next !== null),
    ...next,
    ...items,
    ...prefixFields(bucketCall, page.commonPrefixes),
  ];
  return xmlAnswer(xmlDocument(element('ListVersionsResult', fields)));
}

const versionMarker = (version: StoredVersion | null): Xml[] =>
  version === null ? [] : [element('NextVersionIdMarker', version.versionId)];
