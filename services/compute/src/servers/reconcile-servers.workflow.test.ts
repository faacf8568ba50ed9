/**
 * @processes
 */
import type { ComputeServerView } from '@drydock/contracts/compute/compute-servers';
import { callerOf } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { type ComputeWorld, openWorld } from '../../test/compute-world';
import { givenServer, startReconciliation } from '../../test/given-server';
import { type ComputeDatabase, openDatabase } from '../context/database.store';
import { applySeen, databaseTime, holdMachine, lockServer, releaseUnchanged, type SeenMachine } from './server.store';
import { ownerOf } from './server.types';

let world: ComputeWorld;
let database: ComputeDatabase;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf(), { target: {} });
  database = openDatabase(world.api.postgres.url, { max: 4 });
  world.spawnWorker();
});
afterAll(async () => {
  await database.close();
  await world.close();
});

const read = async (serverId: string) =>
  (await world.api.call('GET', `/v1/compute/servers/${serverId}`)).json as ComputeServerView;
async function reconcile(mode: 'live' | 'sandbox' = 'live'): Promise<void> {
  const id = await startReconciliation(world.api, mode);
  await until(
    async () =>
      (await world.api.rows("SELECT 1 FROM workflow WHERE id = $1 AND status = 'succeeded'", [id])).length === 1,
  );
}
const machine = (id: string, change: object) => world.project.admin('PATCH', `/servers/${id}`, change);

it('the worker schedules it for each range of each mode', async () => {
  const names = await until(async () => {
    const rows = await world.api.rows<{ name: string }>('SELECT name FROM workflow_schedule ORDER BY name');
    return rows.length > 0 && rows.map(({ name }) => name);
  });
  expect(names).toEqual(['reconcile_servers:live:fsn', 'reconcile_servers:sandbox:fsn']);
  await until(
    async () =>
      (await world.api.rows("SELECT 1 FROM workflow WHERE request_id LIKE 'schedule_%' AND status = 'succeeded'"))
        .length === 2,
  );
});

it('power, addresses and the provider’s status follow the machine', async () => {
  const machineId = await world.project.makeMachine();
  const serverId = await givenServer(world.api, world.caller, { machineId });
  await machine(machineId, { status: 'off', ipv4: null, ipv6: '2001:db8:77::/64' });
  await reconcile();
  expect(await read(serverId)).toMatchObject({
    vendor_status: 'off',
    power_state: 'off',
    addresses: ['2001:db8:77::/64'],
    operable: true,
  });
  await machine(machineId, { status: 'migrating', ipv6: null });
  await reconcile();
  expect(await read(serverId)).toMatchObject({ vendor_status: 'migrating', power_state: 'unknown', addresses: [] });
});

it('reports that a machine has vanished, and stops its meter', async () => {
  const machineId = await world.project.makeMachine();
  const serverId = await givenServer(world.api, world.caller, { machineId });
  await world.project.admin('DELETE', `/servers/${machineId}`);
  await reconcile();
  const gone = await read(serverId);
  expect(gone).toMatchObject({
    status: 'active',
    vendor_status: 'not_found',
    power_state: 'unknown',
    addresses: [],
    operable: false,
  });
  expect(gone.billing).toMatchObject({ status: 'cancelled', started_hours: 1 });
  const refused = await world.api.call('POST', `/v1/compute/servers/${serverId}/snapshots`, { body: {} });
  expect(refused.json).toMatchObject({ code: 'server_not_operable' });
});

it('a machine that is missing in the listing alone has not vanished', async () => {
  const machineId = await world.project.makeMachine();
  const serverId = await givenServer(world.api, world.caller, { machineId });
  await world.project.fault({ method: 'GET', path: '^/v1/servers$', answer: { kind: 'edited', set: { servers: [] } } });
  await reconcile();
  expect(await read(serverId)).toMatchObject({ vendor_status: 'running', power_state: 'on', operable: true });
});

it('a machine that cannot be read has not vanished, and other servers are still compared', async () => {
  const [ill, well] = ['515151', await world.project.makeMachine()];
  const given = (machineId: string) => givenServer(world.api, world.caller, { machineId });
  const [illId, wellId] = [await given(ill), await given(well)];
  await machine(well, { status: 'off' });
  await world.project.fault({
    method: 'GET',
    path: `^/v1/servers/${ill}$`,
    times: 50,
    answer: { kind: 'fixed', status: 500 },
  });
  await reconcile();
  await world.project.admin('DELETE', '/faults');
  expect(await read(wellId)).toMatchObject({ power_state: 'off' });
  expect(await read(illId)).toMatchObject({ vendor_status: 'running', operable: true });
});

it('forgets the notes of sends whose workflows ended days ago, and its own old failed runs', async () => {
  const [over, open, gone] = [uuidv7(), uuidv7(), uuidv7()];
  const given = (id: string, kind: string, status: string, finished: string | null, subject = 'server') =>
    world.api.rows(
      `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, status, error, finished_at)
       VALUES ($1::uuid, $2, 'test:' || $1::text, $5, 'none', gen_random_uuid(), 'live', '{}', 'test', $3, '{"code":"step_failed"}', now() + $4::interval)`,
      [id, kind, status, finished, subject],
    );
  await given(over, 'roll_back_server', 'failed', '-3 days');
  await given(open, 'roll_back_server', 'needs_attention', null);
  const failedRun = uuidv7();
  await given(failedRun, 'reconcile_servers', 'failed', '-40 days', 'deploy_target');
  for (const id of [over, open, gone])
    await world.api.rows(
      "INSERT INTO provider_sends (workflow_id, fence, sent_at) VALUES ($1, 1, now() - interval '4 days')",
      [id],
    );
  await reconcile();
  const left = await world.api.rows<{ id: string }>(
    'SELECT workflow_id AS id FROM provider_sends WHERE workflow_id = ANY($1::uuid[])',
    [[over, open, gone]],
  );
  expect(left).toEqual([{ id: open }]);
  expect(await world.api.rows('SELECT 1 FROM workflow WHERE id = $1', [failedRun])).toEqual([]);
});

it('leaves out a server that another workflow works on', async () => {
  const machineId = await world.project.makeMachine();
  const serverId = await givenServer(world.api, world.caller, { machineId, operable: false, powerState: 'rebooting' });
  await world.api.rows(
    `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, due_at)
     VALUES (gen_random_uuid(), 'roll_back_server', 'server:' || $1::text, 'server', $1::text, gen_random_uuid(), 'live', '{}', 'test', now() + interval '1 hour')`,
    [serverId],
  );
  await reconcile();
  expect(await read(serverId)).toMatchObject({ operable: false, power_state: 'rebooting' });
  await world.api.rows(
    'UPDATE workflow SET status = \'needs_attention\', error = \'{"code":"step_failed"}\' WHERE subject_id = $1',
    [serverId],
  );
  await reconcile();
  expect(await read(serverId)).toMatchObject({ operable: false, power_state: 'on' });
});

/** Records the machine `machineId` as running, as a listing that began at `listedAt` shows it. */
const recordAsOn = (machineId: string, listedAt: Date): Promise<void> => {
  const state = { vendorStatus: 'running', powerState: 'on', spec: null } as const;
  const seen: SeenMachine = { ...state, machineId, name: '', addresses: [] };
  const range = { mode: 'live', deployTarget: 'fsn' } as const;
  return database.transaction((tx) => applySeen(tx, range, [seen], listedAt.toISOString()));
};

it.each(['before', 'after'])(
  'leaves out a server that a workflow gets while the reconciliation waits for it, listed %s the acceptance',
  async (listed) => {
    const serverId = await givenServer(world.api, world.caller);
    const machineId = `0${serverId}`;
    const recording = await database.transaction(async (tx) => {
      const listedBefore = await databaseTime(database.pool);
      await lockServer(tx, ownerOf(world.caller), serverId);
      await database.sql(tx).query(
        `INSERT INTO workflow
           (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, due_at)
         VALUES (gen_random_uuid(), 'roll_back_server', 'server:' || $1::text, 'server', $1::text,
           gen_random_uuid(), 'live', '{}', 'test', now() + interval '1 hour')`,
        [serverId],
      );
      await holdMachine(tx, serverId, 'rebooting');
      const listedAt = listed === 'before' ? listedBefore : await databaseTime(database.pool);
      const work = recordAsOn(machineId, listedAt);
      // An error is thrown below, where the work is awaited.
      work.catch(() => undefined);
      await until(
        async () =>
          (
            await world.api.rows(
              `SELECT 1 FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%servers%'`,
            )
          ).length > 0,
      );
      return { work };
    });
    await recording.work;
    expect(await read(serverId)).toMatchObject({ operable: false, power_state: 'rebooting' });
  },
);

it('does not record a listing that began before a failed workflow released the server', async () => {
  const serverId = await givenServer(world.api, world.caller, { operable: false, powerState: 'stopping' });
  const listedAt = await databaseTime(database.pool);
  await database.transaction((tx) => releaseUnchanged(tx, serverId, 'off'));
  await recordAsOn(`0${serverId}`, listedAt);
  expect(await read(serverId)).toMatchObject({ operable: true, power_state: 'off' });
});

it('the reconciliation of the sandbox touches no live server', async () => {
  const serverId = await givenServer(world.api, world.caller, { machineId: '424242' });
  await reconcile('sandbox');
  expect(await read(serverId)).toMatchObject({ vendor_status: 'running', operable: true });
  await reconcile('live');
  expect(await read(serverId)).toMatchObject({ vendor_status: 'not_found', operable: false });
});
