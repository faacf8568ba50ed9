import { findVersion } from './object-calls';
import { assertHasLock, assertMayRetain, parseRetention } from './object-lock';
import { receiveText } from './receive-body';
import { emptyAnswer, type S3Reply, xmlAnswer } from './s3-call';
import { refuse } from './s3-errors';
import type { BucketCall } from './s3-world';
import { retentionModes } from './stored-version';
import { element, textOf, xmlDocument } from './xml';

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
