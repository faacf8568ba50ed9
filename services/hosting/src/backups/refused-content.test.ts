/**
 * Runs whole workflows on sites whose content cannot be packed or restored.
 *
 * @tier long
 * @processes
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { until } from '@drydock/testing/wait';
import { deletionOf } from '../../test/deleted-site';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { fillSite, runSql, stateOf } from '../../test/site-state';

const faults = createFaultTokens();
let world: HostingWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf());
});
beforeEach(() => void world.spawnWorker({ DRYDOCK_FAULTS: faults.folder }));
afterEach(() => world.endWorkers());
afterAll(async () => {
  await world.close();
  faults.remove();
});

const restore = async (siteId: string, backupId: string) =>
  (await world.api.call('POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } })).headers[
    'location'
  ];
const surfaceOf = async (siteId: string) =>
  (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;
const statusOf = async (siteId: string) =>
  ((await world.api.call('GET', `/v1/sites/${siteId}`)).json as { status: string }).status;

/** Fills the site, and creates a table that cannot be read any more once {@link spoil} has run. */
async function fillWithColours(siteId: string, version: number): Promise<void> {
  await fillSite(world, siteId, version);
  const { databaseUrl } = await world.placeOf(siteId);
  await runSql(
    databaseUrl,
    "CREATE TYPE colour AS ENUM ('red'); CREATE TABLE paints (colour colour); INSERT INTO paints VALUES ('red')",
  );
}

/**
 * Deletes the values of all enums from the catalogue. After that Postgres refuses to read any row with such a value.
 */
async function spoil(siteId: string, releaseId: string): Promise<void> {
  const file = path.join(world.sitesDir, 'live', siteId, 'releases', releaseId, 'release.json');
  const { database } = JSON.parse(readFileSync(file, 'utf8')) as { database: string };
  await runSql(
    Object.assign(new URL(readSharedCluster().adminUrl), { pathname: `/${database}` }).href,
    'DELETE FROM pg_catalog.pg_enum',
  );
}

const attemptsOf = ({ steps }: { steps: { name: string; attempts: number }[] }, step: string) =>
  steps.find(({ name }) => name === step)?.attempts;

it('the backup of a site that cannot be packed fails at the first attempt and names the object; the site can be deleted', async () => {
  const siteId = await makeSite(world);
  await fillWithColours(siteId, 1);
  await spoil(siteId, (await world.host.readSite(siteId)).current_release ?? '');
  const accepted = await world.api.call('POST', `/v1/sites/${siteId}/backups`, { body: {} });
  const view = await ended(world, accepted.headers['location']);
  expect(view).toMatchObject({
    status: 'failed',
    error: { code: 'site_content_refused', detail: expect.stringContaining('paints') },
  });
  expect(attemptsOf(view, 'pack')).toBe(1);
  expect((await surfaceOf(siteId)).backups).toMatchObject([{ status: 'failed', error_code: 'site_content_refused' }]);
  const removal = await world.api.call('DELETE', `/v1/sites/${siteId}`);
  expect(await ended(world, removal.headers['location'])).toMatchObject({
    status: 'failed',
    error: { code: 'site_content_refused' },
  });
  await succeed(world, 'DELETE', `/v1/sites/${siteId}?last_backup=none`);
});

it('a deleted site with a view that cannot be computed any more and rows partitioned by an enum comes back, with a finding for each difference', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const { databaseUrl } = await world.placeOf(siteId);
  await runSql(
    databaseUrl,
    `CREATE TYPE paint AS ENUM ('red', 'green', 'blue', 'black', 'white', 'grey', 'pink', 'brown');
     CREATE TABLE cars (paint paint) PARTITION BY HASH (paint); CREATE TABLE cars0 PARTITION OF cars FOR VALUES WITH (MODULUS 2, REMAINDER 0);
     CREATE TABLE cars1 PARTITION OF cars FOR VALUES WITH (MODULUS 2, REMAINDER 1); INSERT INTO cars SELECT unnest(enum_range(NULL::paint));
     CREATE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2 * $1; END';
     CREATE TABLE sums (n int, double int GENERATED ALWAYS AS (twice(n)) STORED); INSERT INTO sums VALUES (1);
     CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 3 * $1; END';
     CREATE FUNCTION known(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN EXISTS (SELECT FROM sums); END';
     CREATE TABLE marks (mark int CONSTRAINT is_known CHECK (known(mark))); INSERT INTO marks VALUES (1);
     CREATE OR REPLACE FUNCTION known(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN false; END';
     CREATE TABLE shares (part int, whole int); CREATE MATERIALIZED VIEW ratios AS SELECT part / whole AS ratio FROM shares;
     INSERT INTO shares VALUES (1, 0)`,
  );
  await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
  const accepted = await world.api.call('POST', `/v1/sites/deleted/${await deletionOf(world.api, siteId)}/restore`);
  const detail = expect.stringMatching(
    /^materialized view public\.ratios .* division by zero.* run: REFRESH MATERIALIZED VIEW public\.ratios\.$/,
  );
  expect(await ended(world, accepted.headers['location'])).toMatchObject({
    status: 'succeeded',
    findings: [
      {
        level: 'WARNING',
        code: 'recomputed',
        detail: expect.stringMatching(
          /^column "public"."sums"."double" .* run: UPDATE "public"."sums" SET "n" = "n"\.$/,
        ),
      },
      { level: 'WARNING', code: 'not_populated', detail },
      {
        level: 'WARNING',
        code: 'not_validated',
        detail: expect.stringMatching(
          /"is_known" .* run: ALTER TABLE "public"."marks" VALIDATE CONSTRAINT "is_known"\.$/,
        ),
      },
    ],
  });
  await runSql(
    (await world.placeOf(siteId)).databaseUrl,
    'DO $$ BEGIN ASSERT (SELECT count(DISTINCT paint) = 8 FROM cars); END $$; DELETE FROM shares; REFRESH MATERIALIZED VIEW ratios',
  );
});

it('a state that cannot be kept is not replaced: the restore fails before it changes anything', async () => {
  const siteId = await makeSite(world);
  await fillWithColours(siteId, 1);
  const backupId = await makeBackup(world, siteId);
  await fillWithColours(siteId, 2);
  const { current_release: release } = await world.host.readSite(siteId);
  await spoil(siteId, release ?? '');
  const view = await ended(world, await restore(siteId, backupId));
  expect(view).toMatchObject({
    status: 'failed',
    error: { code: 'site_content_refused', detail: expect.stringContaining('paints') },
  });
  expect(attemptsOf(view, 'prove_safety_copy')).toBe(1);
  expect(attemptsOf(view, 'freeze')).toBe(0);
  expect(await world.host.readSite(siteId)).toMatchObject({
    current_release: release,
    releases: [release],
    frozen: false,
  });
  expect([await statusOf(siteId), (await surfaceOf(siteId)).backups.length]).toEqual(['active', 1]);
});

it('a replaced state that cannot be packed after the switch is kept as it is, and the restore succeeds', async () => {
  const siteId = await makeSite(world);
  await fillWithColours(siteId, 1);
  const wanted = await stateOf(world, siteId);
  const backupId = await makeBackup(world, siteId);
  const { current_release: old } = await world.host.readSite(siteId);
  faults.arm('restore_backup.thaw.after_checkpoint', 'stop');
  const location = await restore(siteId, backupId);
  await until(() => faults.left().length === 0, { what: 'the switch' });
  await spoil(siteId, old ?? '');
  await world.endWorkers();
  world.spawnWorker();
  expect(await ended(world, location)).toMatchObject({
    status: 'succeeded',
    findings: [{ level: 'WARNING', code: 'safety_copy_not_taken', detail: expect.stringContaining('paints') }],
  });
  expect(await stateOf(world, siteId)).toEqual(wanted);
  expect((await world.host.readSite(siteId)).releases).toContain(old);
  expect((await surfaceOf(siteId)).backups).toMatchObject([
    { kind: 'pre_restore', status: 'failed', error_code: 'site_content_refused', restorable: false },
    { id: backupId },
  ]);
  expect(await statusOf(siteId)).toBe('active');
  // The next restore packs the release that it replaces, and then removes all other releases.
  await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
  expect((await world.host.readSite(siteId)).releases).toHaveLength(1);
});

it('a backup that Postgres refuses is named so, with the object, and is not called tampered', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const { databaseUrl } = await world.placeOf(siteId);
  await runSql(
    databaseUrl,
    `CREATE FUNCTION share(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
     CREATE INDEX shares ON version (share(1)); CREATE OR REPLACE FUNCTION share(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN n / 0; END'`,
  );
  const backupId = await makeBackup(world, siteId);
  const { current_release: release } = await world.host.readSite(siteId);
  const view = await ended(world, await restore(siteId, backupId));
  expect(view).toMatchObject({
    status: 'failed',
    error: { code: 'backup_content_refused', detail: expect.stringContaining('shares') },
  });
  expect(attemptsOf(view, 'stage')).toBe(1);
  expect(await world.host.readSite(siteId)).toMatchObject({
    current_release: release,
    releases: [release],
    frozen: false,
  });
});
