/**
 * Runs a worker against a provider whose answers are lost, late or wrong.
 *
 * @tier long
 * @processes
 */
import type { ChildProcess } from 'node:child_process';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import { type ComputeWorld, type Disk, makeDisk, openWorld, rollBack } from '../test/compute-world';

/** A real worker process works on an emulator behind a socket. The emulator's ledger shows the effects. */
let world: ComputeWorld;
let worker: ChildProcess;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf());
  // The lease is long, because a worker on a busy machine could lose a lease of one second. After a lost lease, a
  // change that was noted but not sent would fail as not accepted.
  worker = world.spawnWorker({ WORKFLOW_LEASE_SECONDS: '15' });
});
afterAll(() => world.close());
afterEach(() => world.project.admin('DELETE', '/faults'));

const rebuild = 'actions/rebuild$';
const sentTo = async ({ machineId }: Disk): Promise<number> =>
  (await world.project.ledger('rebuild_server')).filter(({ resource }) => resource === machineId).length;
const actionsOn = ({ serverId }: Disk): Promise<string[]> => auditedOf(world.api, `/v1/compute/servers/${serverId}`);
const serverOf = async ({ serverId }: Disk) => (await world.api.call('GET', `/v1/compute/servers/${serverId}`)).json;
/** Rolls back, and resolves with what the workflow, the disk, the provider's ledger and the audit log then show. */
async function outcomeOf(disk: Disk) {
  const answer = await rollBack(world, disk);
  expect(answer.status).toBe(202);
  const { status, error, steps } = await ended(world, answer.headers['location']);
  const content = await world.project.readDisk(disk.machineId);
  return { status, code: error?.code, steps, content, sent: await sentTo(disk), audited: await actionsOn(disk) };
}
const rolledBack = { status: 'succeeded', code: undefined, content: 'new', sent: 1, audited: ['server.roll_back'] };

it('rolls the disk back, once, and leaves a server that can be acted on', async () => {
  const disk = await makeDisk(world);
  expect(await outcomeOf(disk)).toMatchObject(rolledBack);
  expect(await serverOf(disk)).toMatchObject({
    status: 'active',
    operable: true,
    power_state: 'on',
    vendor_status: 'running',
    message: '',
  });
});

it('searches for a rollback whose answer was lost, and never sends it again', async () => {
  const disk = await makeDisk(world);
  await world.project.fault({ method: 'POST', path: rebuild, isCarriedOut: true, answer: { kind: 'reset' } });
  expect(await outcomeOf(disk)).toMatchObject(rolledBack);
});

it('a request that is lost before the provider gets it fails the workflow, with the disk as it was and an audit entry', async () => {
  const disk = await makeDisk(world);
  await world.project.fault({ method: 'POST', path: rebuild, answer: { kind: 'silence' } });
  const audited = ['server.roll_back'];
  expect(await outcomeOf(disk)).toMatchObject({
    status: 'failed',
    code: 'provider_not_accepted',
    content: 'old',
    sent: 0,
    audited,
  });
  expect(await serverOf(disk)).toMatchObject({ status: 'active', operable: true, power_state: 'on', message: '' });
  // The server accepts work again.
  expect(await outcomeOf(disk)).toMatchObject({ ...rolledBack, audited: [...audited, 'server.roll_back'] });
});

it.each([
  ['HTML', { kind: 'fixed', status: 200, body: '<html>' }],
  ['a body cut short', { kind: 'truncated', bytes: 20 }],
  ['another machine’s action', { kind: 'edited', set: { 'action.resources.0.id': 1 } }],
] as const)('%s counts as no answer, and the accepted rollback is found', async (_what, answer) => {
  const disk = await makeDisk(world);
  await world.project.fault({ method: 'POST', path: rebuild, isCarriedOut: true, answer });
  expect(await outcomeOf(disk)).toMatchObject(rolledBack);
});

it('statuses that come twice or out of order never undo the end of an action', async () => {
  const disk = await makeDisk(world);
  const stale = { kind: 'edited', set: { 'actions.0.status': 'running', 'actions.0.progress': 3 } } as const;
  await world.project.fault({ method: 'GET', path: '/actions$', times: 3, answer: stale });
  expect(await outcomeOf(disk)).toMatchObject(rolledBack);
});

it('an answer about the action of another machine makes the workflow wait for staff, and the server stays locked', async () => {
  const disk = await makeDisk(world);
  await world.project.fault({
    method: 'GET',
    path: '^/v1/actions$',
    times: 9,
    answer: { kind: 'edited', set: { 'actions.0.resources.0.id': 1 } },
  });
  const outcome = await outcomeOf(disk);
  expect(outcome).toMatchObject({ status: 'needs_attention', sent: 1, audited: ['server.roll_back'] });
  expect((await rollBack(world, disk)).json).toMatchObject({ code: 'needs_attention' });
  expect(await serverOf(disk)).toMatchObject({ operable: false });
});

it.each([
  ['was deleted', 'snapshot_not_on_server', null],
  ['became unavailable', 'snapshot_not_ready', { status: 'unavailable' }],
  ['became too large', 'snapshot_incompatible', { diskSize: 400 }],
])('refuses, just before the send, a snapshot that %s after the request was answered', async (_what, code, change) => {
  const disk = await makeDisk(world);
  worker.kill('SIGSTOP');
  const answer = await rollBack(world, disk);
  if (change === null) await world.project.removeSnapshot(disk.snapshotId);
  else await world.project.admin('PATCH', `/images/${disk.snapshotId}`, change);
  worker.kill('SIGCONT');
  expect(await ended(world, answer.headers['location'])).toMatchObject({ status: 'failed', error: { code } });
  expect([await world.project.readDisk(disk.machineId), await sentTo(disk), await actionsOn(disk)]).toEqual([
    'old',
    0,
    ['server.roll_back'],
  ]);
  expect(await serverOf(disk)).toMatchObject({ operable: true, power_state: 'on' });
});

it('one workflow waits out a locked machine, conflicts and a spent rate limit', async () => {
  const disk = await makeDisk(world);
  const refused = (status: number, code: string, headers = {}) =>
    world.project.fault({
      method: 'POST',
      path: rebuild,
      answer: { kind: 'fixed', status, headers, body: JSON.stringify({ error: { code, message: code } }) },
    });
  await refused(423, 'locked');
  await refused(429, 'rate_limit_exceeded', { 'retry-after': '1' });
  for (let number = 0; number < 3; number += 1) await refused(409, 'conflict');
  const outcome = await outcomeOf(disk);
  expect(outcome).toMatchObject(rolledBack);
  expect(outcome.steps.find(({ name }) => name === 'send')?.attempts).toBeGreaterThan(1);
});

it('waits for a machine that was locked after the request was answered', async () => {
  const disk = await makeDisk(world);
  worker.kill('SIGSTOP');
  const answer = await rollBack(world, disk);
  await world.project.admin('PATCH', `/servers/${disk.machineId}`, { isHiddenLocked: true });
  worker.kill('SIGCONT');
  const location = String(answer.headers['location']);
  await until(async () => {
    const [row] = await world.api.rows<{ attempts: number }>(
      "SELECT attempts FROM workflow_step WHERE workflow_id = $1 AND name = 'send'",
      [location.split('/').at(-1)],
    );
    return (row?.attempts ?? 0) > 1;
  });
  await world.project.admin('PATCH', `/servers/${disk.machineId}`, { isHiddenLocked: false });
  expect(await ended(world, location)).toMatchObject({ status: 'succeeded' });
  expect(await sentTo(disk)).toBe(1);
});

it('an action that fails at the provider fails the workflow with its code, and staff need do nothing', async () => {
  const disk = await makeDisk(world);
  await world.project.admin('PATCH', `/servers/${disk.machineId}`, { labels: { 'emulator.fail': 'rebuild_server' } });
  expect(await outcomeOf(disk)).toMatchObject({
    status: 'failed',
    code: 'rollback_failed',
    content: 'old',
    sent: 1,
    audited: ['server.roll_back'],
  });
  expect(await serverOf(disk)).toMatchObject({ status: 'active', operable: true, message: '' });
});

it('a sandbox server called fail_rollback fails without the provider, and one called slow takes its time', async () => {
  const caller = { ...world.caller, mode: 'sandbox' as const };
  const failing = await makeDisk(world, { name: 'fail_rollback' }, caller);
  const answer = await rollBack(world, failing, { caller });
  expect(await ended(world, answer.headers['location'], { caller })).toMatchObject({
    status: 'failed',
    error: { code: 'rollback_failed' },
  });
  expect([await sentTo(failing), await world.project.readDisk(failing.machineId)]).toEqual([0, 'old']);
  const slow = await makeDisk(world, { name: 'slow' }, caller);
  const slowly = await rollBack(world, slow, { caller });
  expect(await ended(world, slowly.headers['location'], { caller })).toMatchObject({ status: 'succeeded' });
  expect(await world.project.readDisk(slow.machineId)).toBe('new');
});
