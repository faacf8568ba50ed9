/**
 * Restores sites of which only the files can be restored.
 *
 * @tier long
 * @processes
 */
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { deletionOf } from '../../test/deleted-site';
import { makeBackup, makeSite } from '../../test/hosting-world';
import { type OffsiteWorld, openOffsiteWorld } from '../../test/offsite-world';
import { fillSite, runSql, stateOf } from '../../test/site-state';

let world: OffsiteWorld;
beforeAll(async () => {
  world = await openOffsiteWorld('postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

/**
 * The function of the unique index is changed after the rows were inserted. The changed function gives both rows the
 * same value, so the rows cannot be loaded.
 */
const lostSql = `CREATE FUNCTION half(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
  CREATE TABLE codes (code int); CREATE UNIQUE INDEX by_half ON codes (half(code)); INSERT INTO codes VALUES (2), (3);
  CREATE OR REPLACE FUNCTION half(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 / 2; END'`;

async function makeLostSite(): Promise<string> {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  await runSql((await world.placeOf(siteId)).databaseUrl, lostSql);
  return siteId;
}

const call = (path: string, body?: object) => world.api.call('POST', path, body === undefined ? {} : { body });
const endOf = async (path: string, body?: object) => {
  const { status, headers, text } = await call(path, body);
  if (status !== 202) throw new Error(text);
  return ended(world, headers['location']);
};
const findingsOf = async (path: string, body?: object): Promise<Preflight['findings']> =>
  ((await call(path, body)).json as Preflight).findings.filter(({ code }) => /^files_/.test(code));
const refused = {
  status: 'failed',
  error: { code: 'backup_content_refused', detail: expect.stringContaining('by_half') },
};
const alone = {
  status: 'succeeded',
  findings: expect.arrayContaining([expect.objectContaining({ level: 'WARNING', code: 'files_only' })]),
};

it('a live site gets back the files of its backup and keeps its database, and a backup keeps what was replaced', async () => {
  const siteId = await makeLostSite();
  const before = await stateOf(world, siteId);
  const body = { backup_id: await makeBackup(world, siteId) };
  await fillSite(world, siteId, 2);
  const now = await stateOf(world, siteId);
  const path = `/v1/sites/${siteId}/backups/restore`;
  expect(await endOf(path, body)).toMatchObject(refused);
  expect(await stateOf(world, siteId)).toEqual(now);
  expect(await findingsOf(`${path}/preflight`, body)).toMatchObject([{ level: 'INFO', code: 'files_may_do' }]);
  expect(await findingsOf(`${path}/preflight?contents=files`, body)).toMatchObject([
    { level: 'WARNING', code: 'files_only' },
  ]);
  expect(await endOf(`${path}?contents=files`, body)).toMatchObject(alone);
  expect(await stateOf(world, siteId)).toEqual({ page: '200 file=1 row=2', tree: before.tree, database: now.database });
  const { backups } = (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as {
    backups: { id: string; kind: string }[];
  };
  const [copy] = backups.filter(({ kind }) => kind === 'pre_restore');
  expect(await endOf(path, { backup_id: copy?.id })).toMatchObject({ status: 'succeeded' });
  expect(await stateOf(world, siteId)).toEqual(now);
});

it('a deleted site comes back with its files and an empty database', async () => {
  const siteId = await makeLostSite();
  const { tree } = await stateOf(world, siteId);
  await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
  const path = `/v1/sites/deleted/${await deletionOf(world.api, siteId)}/restore`;
  expect(await endOf(path)).toMatchObject(refused);
  expect(await findingsOf(`${path}/preflight?contents=files`)).toMatchObject([
    { detail: expect.stringContaining('is empty') },
  ]);
  expect(await endOf(`${path}?contents=files`)).toMatchObject(alone);
  expect((await stateOf(world, siteId)).tree).toBe(tree);
  const { databaseUrl } = await world.placeOf(siteId);
  await runSql(
    databaseUrl,
    "DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace); END $$",
  );
  // The site works like any other: its database takes tables, and its backup has them.
  await runSql(databaseUrl, 'CREATE TABLE version AS SELECT 3 AS v');
  const made = await stateOf(world, siteId);
  const backupId = await makeBackup(world, siteId);
  await fillSite(world, siteId, 4);
  expect(await endOf(`/v1/sites/${siteId}/backups/restore`, { backup_id: backupId })).toMatchObject({
    status: 'succeeded',
  });
  expect(await stateOf(world, siteId)).toEqual(made);
});

it('the files of a copy in the customer’s own storage come back alone, an increment with all that it depends on', async () => {
  const siteId = await makeLostSite();
  await world.configure(siteId);
  await world.copy(siteId, 'full');
  const { tree } = await stateOf(world, siteId);
  const body = { copy_id: await world.copy(siteId, 'incremental') };
  await fillSite(world, siteId, 2);
  const { database } = await stateOf(world, siteId);
  const path = `/v1/sites/${siteId}/offsite/restore`;
  expect(await endOf(path, body)).toMatchObject(refused);
  expect(await endOf(`${path}?contents=files`, body)).toMatchObject(alone);
  expect(await stateOf(world, siteId)).toMatchObject({ page: '200 file=1 row=2', tree, database });
});

it('a repeat with the same Idempotency-Key that asks for other contents is refused, and unknown contents are', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const body = { backup_id: await makeBackup(world, siteId) };
  const path = `/v1/sites/${siteId}/backups/restore`;
  const idempotencyKey = 'once';
  const first = await world.api.call('POST', path, { body, idempotencyKey });
  expect(first.status).toBe(202);
  expect(await world.api.call('POST', `${path}?contents=files`, { body, idempotencyKey })).toMatchObject({
    status: 422,
    json: { code: 'idempotency_key_reused' },
  });
  expect(await call(`${path}?contents=database`, body)).toMatchObject({
    status: 422,
    json: { code: 'invalid_request' },
  });
  expect(await ended(world, first.headers['location'])).toMatchObject({ status: 'succeeded' });
});
