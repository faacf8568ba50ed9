/**
 * Tests the cases of a restore. `npm test` leaves this suite out and runs upgrade-and-restore.test.ts instead.
 *
 * @tier long
 * @processes
 */
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import type { CreatedDatabase, ManagedDatabase } from '@drydock/contracts/databases/databases';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { type DatabasesWorld, majorOf, makeDatabase, openWorld, preflightOf, query } from '../../test/databases-world';

let world: DatabasesWorld;
beforeAll(async () => {
  world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

const read = async (id: string) => (await world.api.call('GET', `/v1/databases/${id}`)).json as ManagedDatabase;
const backUp = (id: string, caller = world.caller) =>
  succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${id}/backups`, { body: {}, caller });
const restorePath = (id: string, backupId: string): string => `/v1/databases/${id}/backups/${backupId}/restore`;
const restore = (id: string, backupId: string) =>
  succeed<ManagedDatabase>(world, 'POST', restorePath(id, backupId), { body: {} });
const preflight = (id: string, backupId: string) => preflightOf(world, restorePath(id, backupId));
const backupsOf = async (id: string) =>
  ((await world.api.call('GET', `/v1/databases/${id}/backups`)).json as { data: DatabaseBackup[] }).data;
const textsOf = async (url: string) =>
  (await query<{ text: string }>(url, 'SELECT text FROM notes ORDER BY id')).map(({ text }) => text);
/** Returns the URL for another login at the same address. */
const as = (url: string, username: string, password: string): string => {
  const changed = new URL(url);
  changed.username = username;
  changed.password = password;
  return changed.href;
};
const createFrom = async (backup: DatabaseBackup, engine_version: string) => {
  const body = { label: 'Copy', engine: 'postgres', engine_version, size: 'small', from: { backup_id: backup.id } };
  const accepted = await world.api.call('POST', '/v1/databases', { body });
  return { accepted, view: accepted.status === 202 ? await ended(world, accepted.headers['location']) : null };
};

it('a restore brings back rows, sequences and rights behind the same address; roles stay as they are, and what it replaced becomes a backup', async () => {
  const { id, url } = await makeDatabase(world);
  const [first] = [await read(id)];
  await query(url, "CREATE ROLE reader LOGIN PASSWORD 'the-first-password'");
  await query(url, `GRANT CONNECT ON DATABASE ${first.database_name} TO reader`);
  await query(url, `GRANT SELECT ON notes TO reader; ALTER DATABASE ${first.database_name} SET work_mem = '5MB'`);
  const backup = await backUp(id);
  expect(backup).toMatchObject({ kind: 'on_demand', engine_version: '16' });

  await query(
    url,
    "UPDATE notes SET text = 'broken'; REVOKE SELECT ON notes FROM reader; CREATE TABLE later AS SELECT 1 AS n",
  );
  await query(
    url,
    `ALTER ROLE reader PASSWORD 'the-second-password'; ALTER DATABASE ${first.database_name} RESET work_mem`,
  );
  expect(await preflight(id, backup.id)).toMatchObject({
    refusal: null,
    point: { id: backup.id },
    space: { needed_bytes: expect.any(Number), free_bytes: expect.any(Number) },
    findings: [
      {
        level: 'INFO',
        code: 'backup_proven',
        detail: expect.stringContaining('The schema of the backup was loaded into 16'),
      },
    ],
    undo: false,
  });
  expect(await restore(id, backup.id)).toMatchObject({ id, status: 'provisioning' });

  const after = await read(id);
  expect(after).toMatchObject({ status: 'available', engine_version: '16', host: first.host, port: first.port });
  expect(await textsOf(url)).toEqual(['one', 'two', 'three']);
  expect(await query(url, "SELECT to_regclass('later') AS later, current_setting('work_mem') AS work_mem")).toEqual([
    { later: null, work_mem: '5MB' },
  ]);
  expect(await textsOf(as(url, 'reader', 'the-second-password'))).toEqual(['one', 'two', 'three']);
  await expect(query(as(url, 'reader', 'the-first-password'), 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
  await query(url, "INSERT INTO notes (text) VALUES ('four'); CREATE ROLE another");
  expect(await textsOf(url)).toEqual(['one', 'two', 'three', 'four']);

  const [replaced] = await backupsOf(id);
  expect(replaced).toMatchObject({ kind: 'pre_restore', status: 'completed', engine_version: '16' });
  const kept =
    "SELECT next_run_at > now() + interval '23 hours' AS day FROM workflow_schedule WHERE subject_id = $1 AND kind = 'retire_old_instance'";
  expect(await world.api.rows(kept, [id])).toEqual([{ day: true }]);
  expect((await world.host.client.readDatabase(id)).upgrade).toMatchObject({ phase: 'finished', path: 'restore' });

  await restore(id, replaced?.id ?? '');
  expect(await textsOf(url)).toEqual(['broken', 'broken', 'broken']);
  expect(await query(url, 'SELECT n FROM later')).toEqual([{ n: 1 }]);
  expect(await query(as(url, 'reader', 'the-second-password'), 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
});

it('a backup of 16 is restored into a 17, and a backup that 17 refuses changes nothing and its failure names the object', async () => {
  const { id, url } = await makeDatabase(world);
  const good = await backUp(id);
  // Version 17 does not have this column, so the view cannot be restored there.
  await query(url, 'CREATE VIEW checkpoints AS SELECT checkpoints_timed FROM pg_stat_bgwriter');
  const bad = await backUp(id);
  await query(url, 'DROP VIEW checkpoints');
  expect((await preflight(id, bad.id)).findings).toMatchObject([{ level: 'INFO', code: 'backup_proven' }]);
  await succeed(world, 'POST', `/v1/databases/${id}/upgrade`, { body: { engine_version: '17' } });

  const refused = {
    level: 'ERROR',
    code: 'statement_refused',
    detail: expect.stringMatching(
      /^view public\.checkpoints cannot be made in 17: .*checkpoints_timed.* Make a database of 16 from the backup/,
    ),
  };
  expect(await preflight(id, bad.id)).toMatchObject({ refusal: null, findings: [refused, { code: 'older_major' }] });
  const accepted = await world.api.call('POST', restorePath(id, bad.id), { body: {} });
  expect(await ended(world, accepted.headers['location'])).toMatchObject({
    status: 'failed',
    error: {
      code: 'backup_content_refused',
      findings: [{ level: 'ERROR', detail: expect.stringContaining('checkpoints') }],
    },
  });
  expect([(await read(id)).status, await majorOf(url), await textsOf(url)]).toEqual([
    'available',
    '17',
    ['one', 'two', 'three'],
  ]);
  expect((await backupsOf(id)).map(({ kind }) => kind)).toEqual(['upgrade', 'upgrade', 'on_demand', 'on_demand']);

  await query(url, 'TRUNCATE notes');
  expect((await preflight(id, good.id)).findings.map(({ code }) => code)).toEqual(['backup_proven', 'older_major']);
  await restore(id, good.id);
  expect((await preflight(id, good.id)).findings[0]?.detail).toMatch(/^All of the backup was loaded into 17/);
  expect([await majorOf(url), await textsOf(url)]).toEqual(['17', ['one', 'two', 'three']]);
});

it('a restore names in the findings of its workflow what it could not bring back unchanged', async () => {
  const { id, url } = await makeDatabase(world);
  await query(
    url,
    `CREATE FUNCTION is_new(timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT $1 > current_setting(''app.since'')::timestamptz';
     SET app.since = '2020-01-01'; CREATE TABLE visits (at timestamptz CONSTRAINT recent CHECK (is_new(at))); INSERT INTO visits VALUES ('2021-01-01');
     CREATE ROLE passing; GRANT SELECT ON notes TO passing`,
  );
  const backup = await backUp(id);
  await query(url, `REVOKE SELECT ON notes FROM passing; DROP ROLE passing`);
  const accepted = await world.api.call('POST', restorePath(id, backup.id), { body: {} });
  const { status, findings } = await ended(world, accepted.headers['location']);
  expect(status).toBe('succeeded');
  const [visits, grant] = [
    expect.stringMatching(
      /^constraint "recent" of table "public"."visits" .*app\.since.* run: ALTER TABLE "public"."visits" VALIDATE CONSTRAINT "recent"\.$/,
    ),
    expect.stringContaining('passing'),
  ];
  expect(findings).toEqual([
    { level: 'WARNING', code: 'not_restored', detail: grant },
    { level: 'WARNING', code: 'not_validated', detail: visits },
  ]);
});

it('a materialized view that no longer computes and rows below the hash of an enum come back; the finding, the proof and the preflight say what is true', async () => {
  const { id, url } = await makeDatabase(world);
  await query(
    url,
    `CREATE TYPE paint AS ENUM ('red', 'green', 'blue', 'black', 'white', 'grey', 'pink', 'brown');
     CREATE TABLE cars (paint paint) PARTITION BY HASH (paint); CREATE TABLE cars0 PARTITION OF cars FOR VALUES WITH (MODULUS 2, REMAINDER 0);
     CREATE TABLE cars1 PARTITION OF cars FOR VALUES WITH (MODULUS 2, REMAINDER 1); INSERT INTO cars SELECT unnest(enum_range(NULL::paint));
     CREATE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2 * $1; END';
     CREATE TABLE sums (n int, double int GENERATED ALWAYS AS (twice(n)) STORED, same int GENERATED ALWAYS AS (n) STORED);
     INSERT INTO sums VALUES (1); CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 3 * $1; END';
     CREATE TABLE shares (part int, whole int); CREATE MATERIALIZED VIEW ratios AS SELECT part / whole AS ratio FROM shares;
     INSERT INTO shares VALUES (1, 0)`,
  );
  const backup = await backUp(id);
  await query(url, 'TRUNCATE cars; TRUNCATE notes');
  const accepted = await world.api.call('POST', restorePath(id, backup.id), { body: {} });
  const told = {
    level: 'WARNING',
    code: 'not_populated',
    detail: expect.stringMatching(
      /^materialized view public\.ratios .* division by zero.* run: REFRESH MATERIALIZED VIEW public\.ratios\.$/,
    ),
  };
  const anew = {
    level: 'WARNING',
    code: 'recomputed',
    detail: expect.stringMatching(/^column "public"."sums"."double" .* run: UPDATE "public"."sums" SET "n" = "n"\.$/),
  };
  expect(await ended(world, accepted.headers['location'])).toMatchObject({
    status: 'succeeded',
    findings: [anew, told],
  });
  expect(await query(url, 'SELECT count(*)::int AS n, count(DISTINCT paint)::int AS paints FROM cars')).toEqual([
    { n: 8, paints: 8 },
  ]);
  const proven = {
    code: 'backup_proven',
    detail: expect.stringContaining('all but what the findings beside this one name'),
  };
  expect((await preflight(id, backup.id)).findings).toMatchObject([proven, anew, told]);
});

it('a new database begins with what a backup holds, of its major or a newer one, with a password of its own', async () => {
  const { id, url } = await makeDatabase(world);
  const backup = await backUp(id);
  await query(url, 'TRUNCATE notes');
  const { accepted, view } = await createFrom(backup, '18');
  expect(view).toMatchObject({ kind: 'create_database_from_backup', status: 'succeeded' });
  const { id: copyId, password } = accepted.json as CreatedDatabase;
  const copy = await read(copyId);
  expect(copy).toMatchObject({ status: 'available', engine_version: '18', label: 'Copy' });
  const copyUrl = new URL(url);
  Object.assign(copyUrl, {
    username: copy.username,
    password,
    port: String(copy.port),
    pathname: `/${copy.database_name}`,
  });
  expect([await majorOf(copyUrl.href), await textsOf(copyUrl.href)]).toEqual(['18', ['one', 'two', 'three']]);
  await query(copyUrl.href, "INSERT INTO notes (text) VALUES ('four'); CREATE ROLE another; DROP TABLE notes");
  expect((await world.host.client.readDatabase(copyId)).upgrade).toBeNull();

  expect((await createFrom(await backUp(copyId), '17')).accepted.json).toMatchObject({
    status: 422,
    code: 'backup_version_newer',
  });
});

it('a database is not made from a backup for which the disk has no room: nothing is loaded, and nothing is left of it', async () => {
  const { id } = await makeDatabase(world);
  const backup = await backUp(id);
  await world.api.rows('UPDATE database_backups SET raw_bytes = 1e15 WHERE id = $1', [backup.id]);
  const { accepted, view } = await createFrom(backup, '16');
  expect(view).toMatchObject({ status: 'failed', error: { code: 'storage_full' } });
  const { id: copyId } = accepted.json as CreatedDatabase;
  const changes = world.host.ledger().filter(({ workflowId }) => workflowId === view?.id);
  expect(changes.map(({ op }) => op)).toEqual(['ensure_database', 'destroy_database']);
  expect((await read(copyId)).status).toBe('failed');
});

it('a restore whose replaced content could not be packed fails before its switch and leaves the database as it was', async () => {
  const caller = { ...world.caller, mode: 'sandbox' as const };
  const { id, url } = await makeDatabase(world, 'fail_restore', caller);
  const backup = await backUp(id, caller);
  await query(url, "UPDATE notes SET text = 'later'");
  const accepted = await world.api.call('POST', restorePath(id, backup.id), { body: {}, caller });
  const view = await ended(world, accepted.headers['location'], { caller });
  expect(view).toMatchObject({ status: 'failed', error: { code: 'database_restore_failed' } });
  expect(await textsOf(url)).toEqual(['later', 'later', 'later']);
  await query(url, 'CREATE TABLE more ()');
  expect((await world.host.client.readDatabase(id)).upgrade).toBeNull();
});
