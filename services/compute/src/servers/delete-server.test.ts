/**
 * @tier long
 * @processes
 */
import type { ComputeServerView } from '@drydock/contracts/compute/compute-servers';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { ended, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { refusalOf } from '@drydock/service/testing/problem';
import { type CallOptions, callerOf } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { type ComputeWorld, makeDisk, openWorld } from '../../test/compute-world';
import { givenServer } from '../../test/given-server';

let world: ComputeWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf(), { target: { deadline_ms: 10_000 } });
  world.spawnWorker();
});
afterAll(() => world.close());
afterEach(() => world.project.admin('DELETE', '/faults'));

const pathOf = (serverId: string): string => `/v1/compute/servers/${serverId}`;
const remove = (serverId: string, options: CallOptions = {}) => world.api.call('DELETE', pathOf(serverId), options);
const read = (serverId: string, options: CallOptions = {}) => world.api.call('GET', pathOf(serverId), options);
const preflight = async (serverId: string): Promise<Preflight> =>
  (await world.api.call('POST', `${pathOf(serverId)}/deletion/preflight`)).json as Preflight;
/** Returns the code of the refusal. The call and its preflight must agree. */
async function refusedAs(serverId: string): Promise<string> {
  const told = (await preflight(serverId)).refusal;
  const answer = await remove(serverId);
  expect({ ...told, request_id: '' }).toEqual({ ...(answer.json as object), request_id: '' });
  return refusalOf(answer);
}
async function carryOut(serverId: string, options?: CallOptions) {
  const answer = await remove(serverId, options);
  expect([answer.status, answer.json]).toEqual([202, expect.anything()]);
  return ended(world, answer.headers['location'], options);
}
const deletionsOf = async (machineId: string): Promise<number> =>
  (await world.project.ledger('delete_server')).filter(({ resource }) => resource === machineId).length;
const rowOf = async (serverId: string) =>
  (await world.api.rows('SELECT status, vanished_at FROM servers WHERE id = $1', [serverId]))[0];

it('accepts one of three deletions at once, and restores the server when the provider refuses just before the send', async () => {
  const { serverId, machineId } = await makeDisk(world);
  // The workers are stopped, so that a later worker finds a protection that the request did not see.
  await world.endWorkers();
  const answers = await Promise.all([remove(serverId), remove(serverId), remove(serverId)]);
  const accepted = answers.filter(({ status }) => status === 202);
  expect(accepted).toHaveLength(1);
  expect(accepted[0]?.json).toMatchObject({
    id: serverId,
    status: 'terminating',
    operable: false,
    power_state: 'stopping',
  });
  for (const { status, json } of answers.filter((answer) => !accepted.includes(answer)))
    expect([status, json]).toMatchObject([
      422,
      { code: 'operation_in_progress', workflow_id: workflowIdOf(accepted[0]) },
    ]);
  expect(refusalOf(await world.api.call('POST', `${pathOf(serverId)}/reboot`, { body: {} }))).toBe(
    '422 operation_in_progress',
  );
  expect((await preflight(serverId)).refusal).toMatchObject({ code: 'operation_in_progress' });
  await world.project.admin('PATCH', `/servers/${machineId}`, { isProtected: true });
  world.spawnWorker();
  expect(await ended(world, accepted[0]?.headers['location'])).toMatchObject({
    status: 'failed',
    error: { code: 'server_protected' },
  });
  expect((await read(serverId)).json).toMatchObject({ status: 'active', operable: true, power_state: 'on' });
  expect([await deletionsOf(machineId), (await world.project.snapshotsOf(machineId)).length]).toEqual([0, 1]);
});

it('deletes machine, disk and snapshots with one call and one audit entry, and the server is gone', async () => {
  const { serverId, machineId } = await makeDisk(world);
  expect(await preflight(serverId)).toMatchObject({
    ...{ resource: pathOf(serverId), refusal: null, undo: false, point: null },
    findings: [{ code: 'server_running' }, { code: 'snapshots_deleted', detail: expect.stringContaining(': 1.') }],
  });
  expect(await deletionsOf(machineId)).toBe(0);
  expect(await carryOut(serverId)).toMatchObject({ kind: 'delete_server', status: 'succeeded' });
  expect([await deletionsOf(machineId), await world.project.machinesNamed(serverId)]).toEqual([1, []]);
  expect(await world.project.snapshotsOf(machineId)).toEqual([]);
  expect(refusalOf(await read(serverId))).toBe('404 server_not_found');
  expect(refusalOf(await remove(serverId))).toBe('404 server_not_found');
  for (const filter of ['', '?status=terminated']) {
    const { data } = (await world.api.call('GET', `/v1/compute/servers${filter}`)).json as {
      data: ComputeServerView[];
    };
    expect(data.map(({ id }) => id)).not.toContain(serverId);
  }
  expect(await rowOf(serverId)).toEqual({ status: 'terminated', vanished_at: expect.any(Date) });
  expect(await auditedOf(world.api, pathOf(serverId))).toEqual(['server.delete']);
});

it('deletes twelve snapshots in more than one attempt, and no attempt counts as failed', async () => {
  const { serverId, machineId } = await makeDisk(world);
  for (let made = 1; made < 12; made += 1) await world.project.makeSnapshot(machineId);
  const workflow = await carryOut(serverId);
  expect(workflow.status).toBe('succeeded');
  const { attempts } = workflow.steps.find(({ name }) => name === 'discard_snapshots') ?? { attempts: 0 };
  expect(attempts).toBeGreaterThan(1);
  expect(await world.project.snapshotsOf(machineId)).toEqual([]);
});

it('looks for snapshots until none is left, so that one which a listing lacked is deleted too', async () => {
  const { serverId, machineId, snapshotId } = await makeDisk(world);
  await world.project.makeSnapshot(machineId);
  const { url, token } = world.project.target() as { url: string; token: string };
  const headers = { authorization: `Bearer ${token}` };
  const { image } = (await (await fetch(`${url}/images/${snapshotId}`, { headers })).json()) as { image: object };
  await world.endWorkers();
  const accepted = await remove(serverId);
  // Each of the worker's first three listings has one snapshot of two.
  const answer = { kind: 'edited', set: { images: [image] } } as const;
  await world.project.fault({ method: 'GET', path: '^/v1/images$', times: 3, answer });
  world.spawnWorker();
  expect(await ended(world, accepted.headers['location'])).toMatchObject({ status: 'succeeded' });
  expect(await world.project.snapshotsOf(machineId)).toEqual([]);
});

it('refuses a protected snapshot and a protected or locked machine, as its preflight says, and stops nothing', async () => {
  const { serverId, machineId, snapshotId } = await makeDisk(world);
  await world.project.admin('PATCH', `/images/${snapshotId}`, { isDeleteProtected: true });
  expect(await refusedAs(serverId)).toBe('422 snapshot_protected');
  await world.project.admin('PATCH', `/servers/${machineId}`, { isProtected: true });
  expect(await refusedAs(serverId)).toBe('422 server_protected');
  await world.project.admin('PATCH', `/servers/${machineId}`, { isHiddenLocked: true });
  expect(await refusedAs(serverId)).toBe('422 operation_in_progress');
  expect((await read(serverId)).json).toMatchObject({ status: 'active', operable: true, power_state: 'on' });
});

it('searches for a deletion whose answer was lost, and sends it once', async () => {
  const { serverId, machineId } = await makeDisk(world);
  await world.project.fault({
    method: 'DELETE',
    path: '/v1/servers/\\d+$',
    isCarriedOut: true,
    answer: { kind: 'reset' },
  });
  expect(await carryOut(serverId)).toMatchObject({ status: 'succeeded' });
  expect([await deletionsOf(machineId), await world.project.machinesNamed(serverId)]).toEqual([1, []]);
});

it('deletes failed, suspended and vanished servers, and no machine that has got the number of a vanished one', async () => {
  const failed = await givenServer(world.api, world.caller, { status: 'provisioning', operable: false });
  await world.api.rows("UPDATE servers SET status = 'failed', message = 'refused' WHERE id = $1", [failed]);
  const { serverId: suspended } = await makeDisk(world);
  await world.api.rows("UPDATE servers SET status = 'suspended', operable = false WHERE id = $1", [suspended]);
  const gone = await givenServer(world.api, world.caller, { machineId: '999999' });
  const another = await world.project.makeMachine();
  const vanished = await givenServer(world.api, world.caller, { machineId: another });
  expect(await refusedAs(vanished)).toBe('422 server_not_operable');
  await world.api.rows('UPDATE servers SET vanished_at = now(), operable = false WHERE id = $1', [vanished]);
  for (const serverId of [failed, suspended, gone, vanished]) {
    expect(await carryOut(serverId)).toMatchObject({ status: 'succeeded' });
    expect(await rowOf(serverId)).toMatchObject({ status: 'terminated' });
  }
  expect(await deletionsOf(another)).toBe(0);
});

it('finds by its name the machine of an order that failed before the provider returned a number', async () => {
  const id = uuidv7();
  const machineId = await world.project.makeMachine({ name: id });
  await givenServer(world.api, world.caller, { id, status: 'provisioning', operable: false });
  await world.api.rows("UPDATE servers SET status = 'failed', message = 'refused' WHERE id = $1", [id]);
  expect(await carryOut(id)).toMatchObject({ status: 'succeeded' });
  expect(await deletionsOf(machineId)).toBe(1);
});

it('fails if the name of a sandbox server asks for it, and the server stays', async () => {
  const caller = { ...world.caller, mode: 'sandbox' as const };
  const { serverId, machineId } = await makeDisk(world, { name: 'fail_delete' }, caller);
  expect(await carryOut(serverId, { caller })).toMatchObject({ status: 'failed', error: { code: 'deletion_failed' } });
  expect((await read(serverId, { caller })).json).toMatchObject({ status: 'active', operable: true });
  expect(await deletionsOf(machineId)).toBe(0);
});
