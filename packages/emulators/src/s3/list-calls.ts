import { type S3Reply, xmlAnswer } from './s3-call';
import { refuse } from './s3-errors';
import type { BucketCall } from './s3-world';
import type { StoredVersion } from './stored-version';
import { element, type Xml, xmlDocument } from './xml';

const pageMax = 1000;

interface Page<Item> {
  items: Item[];
  /** Keys up to the delimiter, in their order. */
  commonPrefixes: string[];
  /** The next page continues after this. Null when this was the last page. */
  next: { key: string; item: Item | null } | null;
}

/** One page of the items that `itemsOf` returns for every key. Keys with the same common prefix count as one item. */
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

/** ListObjectsV2, and ListObjects (the first version) for clients that send a marker. */
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

/** Lists versions, the newest of each key first. */
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
