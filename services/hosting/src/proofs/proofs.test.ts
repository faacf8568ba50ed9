/**
 * @tier long
 * @processes
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type RunningS3, startS3 } from '@drydock/emulators';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { namesIn, stopClock, succeedPlatformWork } from '../../test/platform-work';
import { fillSite } from '../../test/site-state';
import { checkImmutabilityWorkflow } from './check-immutability.workflow';
import { restoreDrillWorkflow } from './restore-drill.workflow';

const account = { accessKeyId: 'drydock', secretAccessKey: 'a secret of tests', buckets: ['*'] };
const order = { times: 1, isCarriedOut: false, delayMs: 0 };

let world: HostingWorld;
let s3: RunningS3;

/** Ends the worker and starts another with these settings of the storage. */
async function work(environment: Record<string, string>): Promise<void> {
  await world.endWorkers();
  world.spawnWorker({ CANARY_CONTROL_SECONDS: '1', ...environment });
}
const inBucket = (
  bucket: string,
  keys: { accessKeyId: string; secretAccessKey: string } = account,
): Record<string, string> => ({
  BACKUPS_S3_ENDPOINT: s3.endpoint,
  BACKUPS_S3_BUCKET: bucket,
  BACKUPS_S3_ACCESS_KEY_ID: keys.accessKeyId,
  BACKUPS_S3_SECRET_ACCESS_KEY: keys.secretAccessKey,
});
const reasonOf = async (workflowId: string): Promise<string | undefined> =>
  (await world.api.rows<{ reason: string }>('SELECT reason FROM proofs WHERE workflow_id = $1', [workflowId]))[0]
    ?.reason;
const check = async (): Promise<string | undefined> =>
  reasonOf(await succeedPlatformWork(world.api, checkImmutabilityWorkflow));
const drill = async (): Promise<string | undefined> =>
  reasonOf(await succeedPlatformWork(world.api, restoreDrillWorkflow, { passedAgeMinDays: 0 }));

const keyOf = (accessKeyId: string) => ({ accessKeyId, secretAccessKey: 'a secret of tests' });
beforeAll(async () => {
  const [backend] = serviceBackends();
  if (backend === undefined) throw new Error('no queue');
  world = await openWorld(backend, callerOf());
  await stopClock(world.api);
  s3 = await startS3({
    accounts: [
      account,
      { ...keyOf('no-delete'), buckets: ['*'], mayDelete: false },
      { ...keyOf('no-write'), buckets: ['*'], mayWrite: false },
    ],
    buckets: [
      { name: 'locked', hasObjectLock: true },
      { name: 'open', hasObjectLock: false },
    ],
  });
});
afterAll(async () => {
  await world.close();
  await s3.close();
});

describe('immutability', () => {
  it('is proven by a refused delete of the canary and an accepted delete of the control', async () => {
    await work(inBucket('locked'));
    expect(await check()).toBe('');
    const canaries = s3.world.buckets.get('locked').keys('canary/');
    expect(canaries.map((key) => s3.world.buckets.get('locked').versionsOf(key).length)).toEqual([1]);
  });

  it.each([
    ['no_rule', 'open', account],
    ['positive_control_failed', 'locked', keyOf('no-delete')],
    ['canary_write_failed', 'locked', keyOf('no-write')],
    ['credential_missing', 'locked', { accessKeyId: 'nobody', secretAccessKey: 'x' }],
  ])('is not claimed, for the reason %s, in bucket %s with the key %j', async (reason, bucket, keys) => {
    await work(inBucket(bucket, keys));
    expect(await check()).toBe(reason);
  });

  it('is not claimed of a folder on the worker itself', async () => {
    await work({});
    expect(await check()).toBe('no_rule');
  });

  it('is not claimed of a storage that forgets the lock, or whose refusal says nothing', async () => {
    await work(inBucket('locked'));
    const short =
      '<Retention><Mode>COMPLIANCE</Mode><RetainUntilDate>2026-01-01T00:00:00Z</RetainUntilDate></Retention>';
    s3.faults.add({ ...order, path: 'retention', answer: { kind: 'fixed', status: 200, headers: {}, body: short } });
    expect(await check()).toBe('retention_too_short');
    const conflict = '<Error><Code>OperationAborted</Code><Message>no</Message></Error>';
    const isCanary = 'canary/[^/?]*\\d\\?.*versionId';
    s3.faults.add({
      ...order,
      method: 'DELETE',
      path: isCanary,
      answer: { kind: 'fixed', status: 409, headers: {}, body: conflict },
    });
    expect(await check()).toBe('refusal_unclassified');
  });

  it('is not claimed of a storage that takes locks and then deletes', async () => {
    const careless = await startS3({
      accounts: [account],
      buckets: [{ name: 'locked', hasObjectLock: true }],
      lockAnswer: 'ignored',
    });
    await work({ ...inBucket('locked'), BACKUPS_S3_ENDPOINT: careless.endpoint });
    expect(await check()).toBe('delete_succeeded');
    await careless.close();
  });
});

describe('the restore drill', () => {
  it('says so when there is nothing to restore', async () => {
    await work(inBucket('locked'));
    expect(await drill()).toBe('no_recent_backup');
  });

  it('restores a real backup on a site of its own, which is gone afterwards, and finds it as it was', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    await makeBackup(world, siteId);
    await fillSite(world, siteId, 2);
    const before = namesIn(path.join(world.sitesDir, 'live')).sort();
    expect(await drill()).toBe('');
    expect(namesIn(path.join(world.sitesDir, 'live')).sort()).toEqual(before);
  });

  it('does not begin without enough free space, which belongs to customers', async () => {
    await world.api.rows("UPDATE backups SET raw_bytes = 1::bigint << 50 WHERE status = 'completed'");
    const staged = () => world.ledger().filter(({ op }) => op === 'stage_release').length;
    const before = staged();
    expect(await drill()).toBe('restore_failed');
    expect(staged()).toBe(before);
    await world.api.rows("UPDATE backups SET raw_bytes = 1000000 WHERE status = 'completed'");
  });

  it('fails on an archive that is not what was written', async () => {
    const { buckets } = s3.world;
    const segment =
      buckets
        .get('locked')
        .keys('live/')
        .find((key) => key.endsWith('segment-00000000')) ?? '';
    const file = s3.fileOf('locked', segment);
    const bytes = readFileSync(file);
    bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
    writeFileSync(file, bytes);
    expect(await drill()).toMatch(/canary_unavailable|restore_failed/);
  });
});

it('shows on every surface what was proven of the storage in use, and when', async () => {
  const siteId = await makeSite(world);
  const { json } = await world.api.call('GET', `/v1/sites/${siteId}/backups`);
  // The API of this test uses a folder as its storage, which has no locks.
  expect(json).toMatchObject({
    offsite_enabled: false,
    immutable: false,
    immutability_reason: 'no_rule',
    immutability_verified_at: null,
  });
  expect(json).toMatchObject({ restore_drill_passed: false, restore_drill_at: expect.any(String) });
});
