/**
 * Tests the cases of an upgrade. `npm test` runs only the case in upgrade-and-restore.test.ts.
 *
 * @tier long
 * @processes
 */
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import type { ManagedDatabase } from '@drydock/contracts/databases/databases';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { ended, succeed, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { serviceBackends } from '@drydock/testing/scope';
import { workflowOf } from '@drydock/workflow/testing/workflow-record';
import { type DatabasesWorld, majorOf, makeDatabase, openWorld, query } from '../../test/databases-world';

let world: DatabasesWorld;
beforeAll(async () => {
  world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

const read = async (id: string, caller = world.caller) =>
  (await world.api.call('GET', `/v1/databases/${id}`, { caller })).json as ManagedDatabase;
const backUp = (id: string, caller = world.caller) =>
  succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${id}/backups`, { body: {}, caller });
const preflight = async (id: string, engine_version: string) =>
  (await world.api.call('POST', `/v1/databases/${id}/upgrade/preflight`, { body: { engine_version } }))
    .json as Preflight;

it('a 16 is created, backed up and moved to 18 behind its address while a client writes: every acknowledged row is there', async () => {
  const { id, url } = await makeDatabase(world);
  expect(await preflight(id, '18')).toMatchObject({ refusal: { code: 'never_backed_up' }, point: null, undo: false });
  const { id: backupId } = await backUp(id);
  const first = await read(id);
  expect(first).toMatchObject({
    status: 'available',
    engine_version: '16',
    last_backup_at: expect.any(String),
    restore_verified_at: null,
  });
  const plan = await preflight(id, '18');
  expect(plan).toMatchObject({ refusal: null, point: { id: backupId }, space: { needed_bytes: expect.any(Number) } });

  const acknowledged: number[] = [];
  let isWriting = true;
  const writing = (async () => {
    for (let number = 100; isWriting; number += 1) {
      const isIn = await query(url, `INSERT INTO notes (id, text) VALUES (${number}, 'while moving')`).then(
        () => true,
        () => false,
      );
      if (isIn) acknowledged.push(number);
    }
  })();
  await succeed(world, 'POST', `/v1/databases/${id}/upgrade`, { body: { engine_version: '18' } });
  isWriting = false;
  await writing;

  const after = await read(id);
  expect(after).toMatchObject({
    status: 'available',
    engine_version: '18',
    engine_label: 'PostgreSQL 18',
    host: first.host,
    port: first.port,
    restore_verified_at: expect.any(String),
  });
  expect(await majorOf(url)).toBe('18');
  const kept = new Set((await query<{ id: number }>(url, 'SELECT id FROM notes')).map((row) => row.id));
  expect(acknowledged.length).toBeGreaterThan(5);
  expect([1, 2, 3, ...acknowledged].filter((number) => !kept.has(number))).toEqual([]);
  const backups = ((await world.api.call('GET', `/v1/databases/${id}/backups`)).json as { data: DatabaseBackup[] })
    .data;
  expect(backups.map(({ status, engine_version }) => `${status} ${engine_version}`)).toEqual([
    'completed 18',
    'completed 16',
    'completed 16',
  ]);
  const schedules = await world.api.rows('SELECT kind FROM workflow_schedule WHERE subject_id = $1 ORDER BY kind', [
    id,
  ]);
  expect(schedules).toEqual([{ kind: 'retire_old_instance' }, { kind: 'verify_database_restore' }]);
});

it('a sandbox database whose label asks for it fails before the cutover: the old one serves on, the reason is on the workflow', async () => {
  const caller = { ...world.caller, mode: 'sandbox' as const };
  const { id, url } = await makeDatabase(world, 'fail_upgrade', caller);
  await backUp(id, caller);
  const accepted = await world.api.call('POST', `/v1/databases/${id}/upgrade`, {
    body: { engine_version: '17' },
    caller,
  });
  const view = await ended(world, accepted.headers['location'], { caller });
  expect(view).toMatchObject({ status: 'failed', error: { code: 'upgrade_failed' } });
  expect(await read(id, caller)).toMatchObject({ status: 'available', engine_version: '16' });
  expect([await majorOf(url), (await query(url, 'SELECT * FROM notes')).length]).toEqual(['16', 3]);
  await query(url, 'CREATE TABLE more ()');
});

it('the weekly proof restores the newest backup and reads a row back; a database that was never backed up proves nothing', async () => {
  const [proven, bare] = [await makeDatabase(world, 'Proven'), await makeDatabase(world, 'Bare')];
  await backUp(proven.id);
  await world.api.rows("UPDATE workflow_schedule SET next_run_at = now() WHERE kind = 'verify_database_restore'");
  const ends = async (id: string) =>
    ended(world, `/v1/databases/${id}/workflows/${await workflowOf(world.api, id, 'verify_database_restore')}`);
  expect([(await ends(proven.id)).status, (await ends(bare.id)).status]).toEqual(['succeeded', 'succeeded']);
  expect([(await read(proven.id)).restore_verified_at, (await read(bare.id)).restore_verified_at]).toEqual([
    expect.any(String),
    null,
  ]);
});

it('the weekly proof makes no scratch instance for which the disk has no room, and says so', async () => {
  const { id } = await makeDatabase(world, 'Huge');
  await backUp(id);
  await world.api.rows('UPDATE database_backups SET raw_bytes = 1e15 WHERE database_id = $1', [id]);
  await world.api.rows(
    "UPDATE workflow_schedule SET next_run_at = now() WHERE kind = 'verify_database_restore' AND subject_id = $1",
    [id],
  );
  const workflowId = await workflowOf(world.api, id, 'verify_database_restore');
  const view = await ended(world, `/v1/databases/${id}/workflows/${workflowId}`);
  expect(view).toMatchObject({ status: 'failed', error: { code: 'storage_full' } });
  expect(world.host.ledger().filter((entry) => entry.workflowId === workflowId)).toEqual([]);
  expect(await read(id)).toMatchObject({ status: 'available', restore_verified_at: null });
});

it('a deleted database is gone with its backups, its schedules and its address', async () => {
  const { id, url } = await makeDatabase(world, 'Gone');
  await backUp(id);
  const folder = path.join(world.backupsDir, 'live', id);
  expect(readdirSync(folder)).toHaveLength(1);
  await world.api.call('DELETE', `/v1/databases/${id}`);
  const workflowId = await workflowOf(world.api, id, 'delete_database');
  expect(await ended(world, `/v1/databases/${id}/workflows/${workflowId}`)).toMatchObject({ status: 'succeeded' });
  expect((await world.api.call('GET', `/v1/databases/${id}`)).status).toBe(404);
  expect(existsSync(folder)).toBe(false);
  expect(await world.api.rows('SELECT 1 FROM workflow_schedule WHERE subject_id = $1', [id])).toEqual([]);
  await expect(query(url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

/**
 * Kills the worker of an upgrade after the checkpoint of a step, changes the recorded output of `back_up`, and lets
 * another worker go on. Resolves with the end of the workflow.
 */
async function upgradeWithBackup(id: string, step: string, change: string): Promise<WorkflowView> {
  await backUp(id);
  await world.endWorkers();
  const tokens = createFaultTokens();
  tokens.arm(`upgrade_database.${step}.after_checkpoint`, 'kill');
  const died = once(world.spawnWorker({ DRYDOCK_FAULTS: tokens.folder }), 'exit');
  const accepted = await world.api.call('POST', `/v1/databases/${id}/upgrade`, { body: { engine_version: '18' } });
  await died;
  tokens.remove();
  await world.api.rows(`UPDATE workflow_step SET output = ${change} WHERE workflow_id = $1 AND name = 'back_up'`, [
    workflowIdOf(accepted),
  ]);
  world.spawnWorker();
  return ended(world, accepted.headers['location']);
}

it.each([
  ['does not load the backup', 'back_up', ['job_dump']],
  ['makes no new instance', 'prove_backup', ['job_dump', 'job_verify_dump', 'post_upgrade_abandon']],
])('an upgrade %s if the disk has no room for the unpacked backup, and says so', async (_, step, calls) => {
  const { id, url } = await makeDatabase(world, 'Huge');
  const view = await upgradeWithBackup(id, step, "jsonb_set(output, '{rawBytes}', '1e15')");
  expect(view).toMatchObject({ status: 'failed', error: { code: 'storage_full' } });
  const changes = world.host.ledger().filter(({ workflowId }) => workflowId === view.id);
  expect(changes.map(({ op }) => op)).toEqual(calls);
  expect(await read(id)).toMatchObject({ status: 'available', engine_version: '16' });
  expect([await majorOf(url), (await query(url, 'SELECT * FROM notes')).length]).toEqual(['16', 3]);
});

it('an upgrade whose backup an earlier version of Drydock packed, without its size, goes on', async () => {
  const { id, url } = await makeDatabase(world, 'Unsized');
  const view = await upgradeWithBackup(id, 'back_up', "output - 'rawBytes'");
  expect(view).toMatchObject({ status: 'succeeded' });
  expect(await majorOf(url)).toBe('18');
});
