/**
 * `npm test` runs only two of this service's suites that start a worker beside the service: this suite and
 * reconcile-servers.workflow.test.ts. The others are of the tier `long`.
 *
 * @processes
 */
import type { ChildProcess } from 'node:child_process';
import type { ComputeServerView } from '@drydock/contracts/compute/compute-servers';
import type { ServerSnapshot } from '@drydock/contracts/compute/compute-snapshots';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { until } from '@drydock/testing/wait';
import { type ComputeWorld, makeDisk, openWorld, rollBack } from '../../test/compute-world';

let world: ComputeWorld;
let worker: ChildProcess;
const tokens = createFaultTokens();
let isOver = false;

/** Starts a worker, and a new worker whenever the last worker dies. */
function hire(): void {
  worker = world.spawnWorker({ DRYDOCK_FAULTS: tokens.folder }).once('exit', () => {
    if (!isOver) hire();
  });
}
beforeAll(async () => {
  world = await openWorld('postgres', callerOf(), { target: {} });
  hire();
});
afterAll(async () => {
  isOver = true;
  await world.close();
  tokens.remove();
});
afterEach(() => world.project.admin('DELETE', '/faults'));

const order = { name: 'Web', deploy_target: 'fsn', spec: 'cpx11', image: 'ubuntu-24.04', zone: 'fsn1' };
const servers = '/v1/compute/servers';
/** Orders a server and waits for the end. Resolves with the final state of workflow and server. */
async function outcomeOf(change: object = {}, options: object = {}) {
  const answer = await world.api.call('POST', servers, { body: { ...order, ...change }, ...options });
  const workflow = await ended(world, answer.headers['location'], options);
  const { id } = answer.json as ComputeServerView;
  return { workflow, server: (await world.api.call('GET', `${servers}/${id}`, options)).json as ComputeServerView };
}

it('makes one machine, which is named by the server’s id and runs', async () => {
  const { workflow, server } = await outcomeOf({ term_months: 12 });
  expect(workflow).toMatchObject({ id: server.id, status: 'succeeded', progress: 100 });
  expect(server).toMatchObject({
    status: 'active',
    operable: true,
    power_state: 'on',
    vendor_status: 'running',
    message: '',
  });
  expect(server.addresses).toEqual([expect.stringMatching(/^203\.0\.113\./), expect.stringMatching(/^2001:db8:/)]);
  expect(server.billing).toMatchObject({
    mode: 'term',
    status: 'active',
    subscription_id: expect.any(String),
    charged_until: expect.any(String),
  });
  expect(await world.project.machinesNamed(server.id)).toHaveLength(1);
});

it('makes a machine that the ordered SSH keys open', async () => {
  const sshKeys = ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKxEgF8OZ9/8c/o0W9xLrFiZ5+2cFhyKTaBqhcSnbsOG anna@example.com'];
  const { server } = await outcomeOf({ ssh_keys: sshKeys });
  const [machineId] = await world.project.machinesNamed(server.id);
  expect(await world.project.readDisk(String(machineId), '/root/.ssh/authorized_keys')).toBe(`${sshKeys[0]}\n`);
});

it('charges by the started hour once the machine can be used, and nothing in the sandbox', async () => {
  const { server } = await outcomeOf();
  expect(server.billing).toMatchObject({ mode: 'metered', status: 'active', started_hours: 1, amount_minor: 1 });
  const tried = await outcomeOf({}, { caller: { ...world.caller, mode: 'sandbox' } });
  expect(tried.server).toMatchObject({
    status: 'active',
    billing: { status: 'none', started_hours: 0, charged_until: null },
  });
  expect(await world.project.machinesNamed(tried.server.id)).toEqual([]); // the live project has no such machine
});

it('an order that the provider refuses fails with a reason for the customer, and leaves no machine', async () => {
  const { workflow, server } = await outcomeOf({ image: 'no-such-image' });
  expect(workflow).toMatchObject({ status: 'failed', error: { code: 'order_refused' } });
  expect(server).toMatchObject({
    status: 'failed',
    message: 'The provider does not offer this',
    operable: false,
    billing: { status: 'none' },
  });
  expect(await world.project.machinesNamed(server.id)).toEqual([]);
});

it('finds the machine of an order whose answer was lost, and makes no second one', async () => {
  await world.project.fault({ method: 'POST', path: '^/v1/servers$', isCarriedOut: true, answer: { kind: 'reset' } });
  const { server } = await outcomeOf();
  expect(server).toMatchObject({ status: 'active', power_state: 'on' });
  expect(await world.project.machinesNamed(server.id)).toHaveLength(1);
});

it('deletes the machine of a failed order although the provider’s listing lacks the machine', async () => {
  const edited = (path: string, times: number, set: Record<string, unknown>) =>
    world.project.fault({ method: 'GET', path, times, answer: { kind: 'edited', set } });
  await edited('^/v1/servers$', 1_000, { servers: [] });
  await edited('^/v1/actions$', 1, { 'actions.0.status': 'error' });
  const { workflow, server } = await outcomeOf();
  expect(workflow).toMatchObject({ status: 'failed', error: { code: 'order_failed' } });
  await world.project.admin('DELETE', '/faults');
  expect(await world.project.machinesNamed(server.id)).toEqual([]);
});

it('waits for staff when the machine of a failed order cannot be deleted', async () => {
  const ofActions = (status: string, times: number) =>
    world.project.fault({
      method: 'GET',
      path: '^/v1/actions$',
      times,
      answer: { kind: 'edited', set: { 'actions.0.status': status } },
    });
  await ofActions('running', 500);
  const answer = await world.api.call('POST', servers, { body: order });
  const { id } = answer.json as ComputeServerView;
  const [machineId] = await until(async () => {
    const machines = await world.project.machinesNamed(id);
    return machines.length > 0 && machines;
  });
  await world.project.admin('PATCH', `/servers/${machineId}`, { labels: { 'emulator.fail': 'delete_server' } });
  // The worker is frozen, because it would learn the real state between the removal of the fault and the new fault.
  worker.kill('SIGSTOP');
  await world.project.admin('DELETE', '/faults');
  await ofActions('error', 1);
  worker.kill('SIGCONT');
  // The four failures of the undo are written into the database, because the test would otherwise wait for them.
  await until(
    async () =>
      (
        await world.api.rows(
          `UPDATE workflow_step SET undo_failures = 4 FROM workflow
           WHERE workflow.id = workflow_id AND workflow.id = $1 AND direction = 'undo' AND name = 'create' RETURNING name`,
          [id],
        )
      ).length === 1,
  );
  expect(await ended(world, answer.headers['location'])).toMatchObject({
    status: 'needs_attention',
    error: { code: 'order_failed' },
  });
  // Staff repair the cause at the provider and retry the workflow.
  await world.project.admin('PATCH', `/servers/${machineId}`, { labels: {} });
  await world.api.rows("UPDATE workflow SET status = 'queued', due_at = now(), dispatch_after = now() WHERE id = $1", [
    id,
  ]);
  expect(await ended(world, answer.headers['location'])).toMatchObject({
    status: 'failed',
    error: { code: 'order_failed' },
  });
  expect(await world.project.machinesNamed(id)).toEqual([]);
});

it('abandoning an order whose machine runs ends the workflow and leaves the server active', async () => {
  const { server } = await outcomeOf();
  // The database looks as if the workers had died before they recorded the end of the workflow.
  await world.api.rows(
    `UPDATE workflow SET status = 'needs_attention', finished_at = NULL, error = '{"code":"step_failed"}' WHERE id = $1`,
    [server.id],
  );
  const workflow = `${servers}/${server.id}/workflows/${server.id}`;
  expect((await world.api.call('POST', `${workflow}/abandon`)).status).toBe(202);
  expect(await ended(world, workflow)).toMatchObject({ status: 'failed', error: { code: 'abandoned' } });
  expect((await world.api.call('GET', `${servers}/${server.id}`)).json).toMatchObject({
    status: 'active',
    operable: true,
    message: '',
  });
});

it('takes a snapshot, lists it and deletes it by its number', async () => {
  const { server } = await outcomeOf();
  const snapshots = `${servers}/${server.id}/snapshots`;
  const list = async () => ((await world.api.call('GET', snapshots)).json as { data: ServerSnapshot[] }).data;
  expect(await list()).toEqual([]);
  const taken = await world.api.call('POST', snapshots, { body: { description: 'before the upgrade' } });
  const { id } = taken.json as ServerSnapshot;
  expect([taken.status, taken.json]).toMatchObject([
    202,
    { id: expect.stringMatching(/^\d+$/), description: 'before the upgrade', status: 'creating', size_gb: null },
  ]);
  expect(await ended(world, taken.headers['location'])).toMatchObject({ kind: 'take_snapshot', status: 'succeeded' });
  expect(await list()).toMatchObject([
    { id, description: 'before the upgrade', status: 'available', size_gb: expect.any(Number) },
  ]);
  expect((await world.api.call('DELETE', `${snapshots}/${id}`)).status).toBe(204);
  expect(await list()).toEqual([]);
  expect((await world.api.call('DELETE', `${snapshots}/${id}`)).json).toMatchObject({
    status: 422,
    code: 'snapshot_not_on_server',
  });
  expect(await auditedOf(world.api, `${servers}/${server.id}`)).toEqual([
    'server.order',
    'server_snapshot.take',
    'server_snapshot.delete',
  ]);
});

it('rolls a server back once though kill -9 meets the worker between the send and its record', async () => {
  const disk = await makeDisk(world);
  tokens.arm('roll_back_server.send.after_effect', 'kill');
  const answer = await rollBack(world, disk);
  expect(answer.status).toBe(202);
  expect(await ended(world, answer.headers['location'])).toMatchObject({
    kind: 'roll_back_server',
    status: 'succeeded',
  });
  expect(tokens.left()).toEqual([]);
  const sent = (await world.project.ledger('rebuild_server')).filter(({ resource }) => resource === disk.machineId);
  expect([await world.project.readDisk(disk.machineId), sent.length]).toEqual(['new', 1]);
  const server = (await world.api.call('GET', `${servers}/${disk.serverId}`)).json;
  expect(server).toMatchObject({ status: 'active', operable: true, power_state: 'on', message: '' });
  expect(await auditedOf(world.api, `${servers}/${disk.serverId}`)).toEqual(['server.roll_back']);
});

it('rebuilds from an image and shows it, or keeps the old image if the provider refuses', async () => {
  const { server } = await outcomeOf();
  const answer = await world.api.call('POST', `${servers}/${server.id}/rebuild`, { body: { image: 'debian-12' } });
  expect(await ended(world, answer.headers['location'])).toMatchObject({ kind: 'rebuild_server', status: 'succeeded' });
  expect((await world.api.call('GET', `${servers}/${server.id}`)).json).toMatchObject({
    image: 'debian-12',
    operable: true,
    power_state: 'on',
  });
  const refused = await world.api.call('POST', `${servers}/${server.id}/rebuild`, { body: { image: 'no-such-image' } });
  expect(await ended(world, refused.headers['location'])).toMatchObject({
    status: 'failed',
    error: { code: 'order_refused' },
  });
  expect((await world.api.call('GET', `${servers}/${server.id}`)).json).toMatchObject({
    image: 'debian-12',
    operable: true,
  });
});
