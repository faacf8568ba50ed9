/**
 * Staff abandon upgrades before and after the switch.
 *
 * @tier long
 * @processes
 */
import { once } from 'node:events';
import type { ManagedDatabase } from '@drydock/contracts/databases/databases';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { ended, succeed, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { serviceBackends } from '@drydock/testing/scope';
import { workflowOf } from '@drydock/workflow/testing/workflow-record';
import { type DatabasesWorld, type Made, majorOf, makeDatabase, openWorld, query } from '../../test/databases-world';

let world: DatabasesWorld;
beforeAll(async () => {
  world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
});
afterAll(() => world.close());

const read = async (id: string) => (await world.api.call('GET', `/v1/databases/${id}`)).json as ManagedDatabase;
const upgrade = (id: string) => ['POST', `/v1/databases/${id}/upgrade`, { body: { engine_version: '18' } }] as const;
const hostedOf = async (id: string) => (await world.host.client.readDatabase(id)).upgrade;

/** Kills the worker of an upgrade at this point, and parks the upgrade for staff. Returns the path of the workflow. */
async function parkedUpgrade({ id }: Made, point: string): Promise<string> {
  await succeed(world, 'POST', `/v1/databases/${id}/backups`, { body: {} });
  await world.endWorkers();
  const tokens = createFaultTokens();
  tokens.arm(point, 'kill');
  const worker = world.spawnWorker({ DRYDOCK_FAULTS: tokens.folder });
  const died = once(worker, 'exit');
  const accepted = await world.api.call(...upgrade(id));
  await died;
  tokens.remove();
  const workflowId = workflowIdOf(accepted);
  await world.api.rows(
    'UPDATE workflow SET status = \'needs_attention\', lease_until = NULL, error = \'{"code":"step_failed"}\' WHERE id = $1',
    [workflowId],
  );
  return `/v1/databases/${id}/workflows/${workflowId}`;
}

/**
 * Abandons the workflow as staff, and waits until the workflow that ends the upgrade has succeeded. Resolves with the
 * answer of the `abandon` call.
 */
async function abandon(id: string, location: string): Promise<WorkflowView> {
  const answer = await world.api.call('POST', `${location}/abandon`, { body: {} });
  expect(answer.status).toBe(202);
  world.spawnWorker();
  expect(await ended(world, location)).toMatchObject({
    status: 'failed',
    error: { code: 'abandoned', after: 'step_failed' },
  });
  const ending = await workflowOf(world.api, id, 'end_abandoned_upgrade');
  expect(await ended(world, `/v1/databases/${id}/workflows/${ending}`)).toMatchObject({ status: 'succeeded' });
  return answer.json as WorkflowView;
}

it('an offline upgrade that staff abandon during its copy leaves the database as it was with writes accepted, and can be begun anew', async () => {
  world.spawnWorker();
  const made = await makeDatabase(world);
  // The rows of this table have no key and cannot be compared, so the upgrade takes the offline path.
  await query(made.url, "CREATE TABLE blind AS SELECT '{}'::json AS value");
  const location = await parkedUpgrade(made, 'upgrade_database.copy_data.after_effect');
  expect(await hostedOf(made.id)).toMatchObject({ path: 'offline', phase: 'prepared', are_writes_blocked: true });

  const told = await abandon(made.id, location);
  expect(told.error).toMatchObject({ code: 'abandoned', detail: expect.stringContaining('end_abandoned_upgrade') });
  expect(await hostedOf(made.id)).toBeNull();
  expect(await read(made.id)).toMatchObject({ status: 'available', status_detail: '', engine_version: '16' });
  await query(made.url, "INSERT INTO notes (text) VALUES ('written'); CREATE TABLE more ()");
  expect([await majorOf(made.url), (await query(made.url, 'SELECT * FROM notes')).length]).toEqual(['16', 4]);
  await succeed(world, ...upgrade(made.id));
  expect([await majorOf(made.url), (await query(made.url, 'SELECT * FROM notes')).length]).toEqual(['18', 4]);
});

it('an upgrade that waits for staff after its switch shows a database that serves, and ends when staff retry it', async () => {
  world.spawnWorker();
  const made = await makeDatabase(world);
  const location = await parkedUpgrade(made, 'upgrade_database.compare.after_effect');
  // This makes the workflow look as if its workers had died repeatedly.
  await world.api.rows(
    "UPDATE workflow SET status = 'queued', consecutive_crashes = 99 WHERE status = 'needs_attention'",
  );
  world.spawnWorker();
  expect(await ended(world, location)).toMatchObject({ status: 'needs_attention' });
  expect(await read(made.id)).toMatchObject({
    status: 'available',
    status_detail: expect.stringMatching(/^It serves\./),
    engine_version: '18',
  });
  await query(made.url, "INSERT INTO notes (text) VALUES ('written')");
  expect(await world.api.call('POST', `/v1/databases/${made.id}/backups`, { body: {} })).toMatchObject({
    status: 422,
    json: { code: 'needs_attention' },
  });
  await succeed(world, 'POST', `${location}/retry`);
  expect(await read(made.id)).toMatchObject({ status: 'available', status_detail: '', engine_version: '18' });
});

it('an upgrade that staff abandon after its switch ends with the new version: writes are accepted, and the old instance is kept for a day', async () => {
  world.spawnWorker();
  const made = await makeDatabase(world);
  const location = await parkedUpgrade(made, 'upgrade_database.cutover.after_effect');
  expect(await hostedOf(made.id)).toMatchObject({ phase: 'switched' });
  // This schedule is as an earlier upgrade on the same day would have left it.
  await world.api.rows(
    `INSERT INTO workflow_schedule (name, kind, resource_key, subject_type, subject_id, org_id, mode, input, interval_seconds, next_run_at)
     SELECT 'retire_old_instance:' || $1, 'retire_old_instance', resource_key, subject_type, subject_id, org_id, mode, '{"upgradeId":"earlier"}', 3600,
       now() + interval '2 hours' FROM workflow_schedule WHERE subject_id = $1`,
    [made.id],
  );

  await abandon(made.id, location);
  expect(await hostedOf(made.id)).toMatchObject({ phase: 'finished' });
  expect(await read(made.id)).toMatchObject({ status: 'available', engine_version: '18' });
  await query(made.url, "INSERT INTO notes (text) VALUES ('written'); CREATE TABLE more ()");
  expect([await majorOf(made.url), (await query(made.url, 'SELECT * FROM notes')).length]).toEqual(['18', 4]);
  const keptSql =
    "SELECT next_run_at > now() + interval '23 hours' AS day FROM workflow_schedule WHERE subject_id = $1 AND kind = 'retire_old_instance'";
  expect(await world.api.rows(keptSql, [made.id])).toEqual([{ day: true }]);
  await world.api.rows(
    "UPDATE workflow_schedule SET next_run_at = now() WHERE subject_id = $1 AND kind = 'retire_old_instance'",
    [made.id],
  );
  const retiring = await workflowOf(world.api, made.id, 'retire_old_instance');
  expect(await ended(world, `/v1/databases/${made.id}/workflows/${retiring}`)).toMatchObject({ status: 'succeeded' });
  expect(await hostedOf(made.id)).toBeNull();
});
