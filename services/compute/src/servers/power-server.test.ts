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
import { type ComputeWorld, makeDisk, openWorld } from '../../test/compute-world';

let world: ComputeWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf(), { target: { deadline_ms: 10_000 } });
  world.spawnWorker({ GUEST_SECONDS: '2' });
});
afterAll(() => world.close());
afterEach(() => world.project.admin('DELETE', '/faults'));

type Asked = 'power-on' | 'power-off' | 'reboot';

const pathOf = (serverId: string): string => `/v1/compute/servers/${serverId}`;
const ask = (serverId: string, what: Asked | `${Asked}/preflight`, body: object = {}, options: CallOptions = {}) =>
  world.api.call('POST', `${pathOf(serverId)}/${what}`, {
    ...(what.startsWith('power-on') ? {} : { body }),
    ...options,
  });
const read = async (serverId: string, options: CallOptions = {}): Promise<ComputeServerView> =>
  (await world.api.call('GET', pathOf(serverId), options)).json as ComputeServerView;
const preflight = async (serverId: string, what: Asked, body: object = {}): Promise<Preflight> =>
  (await ask(serverId, `${what}/preflight`, body)).json as Preflight;
/** Returns the code of the refusal. The call and its preflight must agree. */
async function refusedAs(serverId: string, what: Asked): Promise<string> {
  const told = (await preflight(serverId, what)).refusal;
  const answer = await ask(serverId, what);
  expect({ ...told, request_id: '' }).toEqual({ ...(answer.json as object), request_id: '' });
  return refusalOf(answer);
}
async function carryOut(serverId: string, what: Asked, body?: object, options?: CallOptions) {
  const answer = await ask(serverId, what, body, options);
  expect([answer.status, answer.json]).toEqual([202, expect.anything()]);
  return ended(world, answer.headers['location'], options);
}
const toldOf = async (machineId: string): Promise<string[]> =>
  (await world.project.ledger())
    .filter(({ resource, op }) => resource === machineId && /_server$/.test(op))
    .map(({ op }) => op)
    .slice(1);

it('shuts down, powers on and restarts with one call for each change, and writes an audit entry for each request', async () => {
  const { serverId, machineId } = await makeDisk(world);
  const answer = await ask(serverId, 'power-off');
  expect([answer.status, answer.json]).toMatchObject([
    202,
    { id: serverId, status: 'active', operable: false, power_state: 'stopping' },
  ]);
  expect(await ended(world, answer.headers['location'])).toMatchObject({ kind: 'power_server', status: 'succeeded' });
  expect(await read(serverId)).toMatchObject({
    power_state: 'off',
    vendor_status: 'off',
    operable: true,
    status: 'active',
  });
  expect(refusalOf(await ask(serverId, 'reboot'))).toBe('422 server_not_running');
  expect(await carryOut(serverId, 'power-off', { force: true })).toMatchObject({ status: 'succeeded' });
  expect(await carryOut(serverId, 'power-on')).toMatchObject({ status: 'succeeded' });
  expect(await read(serverId)).toMatchObject({ power_state: 'on', operable: true });
  expect(await carryOut(serverId, 'power-on')).toMatchObject({ status: 'succeeded' });
  expect(await carryOut(serverId, 'reboot')).toMatchObject({ status: 'succeeded' });
  expect(await carryOut(serverId, 'reboot', { force: true })).toMatchObject({ status: 'succeeded' });
  expect(await read(serverId)).toMatchObject({ power_state: 'on', operable: true });
  // A server that is already in the wanted state causes no call.
  expect(await toldOf(machineId)).toEqual(['shutdown_server', 'start_server', 'reboot_server', 'reset_server']);
  const [off, on, reboot] = ['server.power_off', 'server.power_on', 'server.reboot'];
  expect(await auditedOf(world.api, pathOf(serverId))).toEqual([off, off, on, on, reboot, reboot]);
});

it('a guest that ignores the shutdown is left running and reported, and force cuts its power', async () => {
  const { serverId, machineId } = await makeDisk(world);
  await world.project.admin('PATCH', `/servers/${machineId}`, { labels: { 'emulator.deaf': '' } });
  expect(await carryOut(serverId, 'power-off')).toMatchObject({
    status: 'failed',
    error: { code: 'guest_unresponsive' },
  });
  expect(await read(serverId)).toMatchObject({ power_state: 'on', operable: true });
  expect(await carryOut(serverId, 'power-off', { force: true })).toMatchObject({ status: 'succeeded' });
  expect(await read(serverId)).toMatchObject({ power_state: 'off', operable: true });
});

it('searches for a restart whose answer was lost, and restarts once', async () => {
  const { serverId, machineId } = await makeDisk(world);
  await world.project.fault({ method: 'POST', path: '/actions/reset$', isCarriedOut: true, answer: { kind: 'reset' } });
  expect(await carryOut(serverId, 'reboot', { force: true })).toMatchObject({ status: 'succeeded' });
  expect(await toldOf(machineId)).toEqual(['reset_server']);
});

it('carries a request out once that is repeated under its Idempotency-Key, and accepts one of three requests at once', async () => {
  const { serverId, machineId } = await makeDisk(world);
  const [first, second] = [
    await ask(serverId, 'reboot', {}, { idempotencyKey: 'once' }),
    await ask(serverId, 'reboot', {}, { idempotencyKey: 'once' }),
  ];
  expect([second.text, second.headers['idempotent-replayed']]).toEqual([first.text, 'true']);
  expect(await ended(world, first.headers['location'])).toMatchObject({ status: 'succeeded' });
  const answers = await Promise.all([ask(serverId, 'power-off'), ask(serverId, 'reboot'), ask(serverId, 'power-on')]);
  const accepted = answers.filter(({ status }) => status === 202);
  expect(accepted).toHaveLength(1);
  const refused = answers.filter(({ status }) => status !== 202).map(({ status, json }) => [status, json]);
  const refusal = [422, { code: 'operation_in_progress', workflow_id: workflowIdOf(accepted[0]) }];
  expect(refused).toMatchObject([refusal, refusal]);
  await ended(world, accepted[0]?.headers['location']);
  expect((await toldOf(machineId)).filter((op) => op === 'reboot_server').length).toBeLessThanOrEqual(2);
});

it('the preflight reports what would be stopped and lost, changes nothing, and needs the permission of the change', async () => {
  const { serverId, machineId } = await makeDisk(world);
  const findingsOf = async (...asked: [Asked, object?]): Promise<string[]> => {
    const { findings, ...told } = await preflight(serverId, ...asked);
    expect(told).toMatchObject({ resource: pathOf(serverId), refusal: null, undo: false, point: null, space: null });
    return findings.map(({ level, code }) => `${level} ${code}`);
  };
  expect(await findingsOf('power-on')).toEqual(['INFO no_change']);
  expect(await findingsOf('power-off')).toEqual(['WARNING server_running', 'INFO still_paid_for']);
  const lost = ['WARNING unwritten_lost', 'WARNING server_running'];
  expect(await findingsOf('power-off', { force: true })).toEqual([...lost, 'INFO still_paid_for']);
  expect(await findingsOf('reboot')).toEqual(['WARNING server_running']);
  expect(await findingsOf('reboot', { force: true })).toEqual(lost);
  expect((await preflight(serverId, 'reboot')).would).toMatch(/^Have the guest of .* restart/);
  expect((await preflight(serverId, 'reboot', { force: true })).would).toMatch(
    /^Cut the power of .* and give it back$/,
  );
  expect([await toldOf(machineId), (await read(serverId)).power_state]).toEqual([[], 'on']);
  expect(await carryOut(serverId, 'power-off', { force: true })).toMatchObject({ status: 'succeeded' });
  expect([await findingsOf('power-off', { force: true }), await findingsOf('power-on')]).toEqual([
    ['INFO no_change'],
    [],
  ]);
  expect(await refusedAs(serverId, 'reboot')).toBe('422 server_not_running');
  const caller = { ...world.caller, scopes: ['sites.view' as const] };
  for (const what of ['power-on', 'power-off', 'reboot'] as const)
    expect(refusalOf(await ask(serverId, `${what}/preflight`, {}, { caller }))).toBe('403 permission_denied');
});

it('refuses a suspended server and a locked or missing machine, as the preflights say', async () => {
  const { serverId, machineId } = await makeDisk(world);
  await world.project.admin('PATCH', `/servers/${machineId}`, { isHiddenLocked: true });
  expect(await refusedAs(serverId, 'power-off')).toBe('422 operation_in_progress');
  await world.project.admin('PATCH', `/servers/${machineId}`, { isHiddenLocked: false });
  await world.api.rows("UPDATE servers SET status = 'suspended' WHERE id = $1", [serverId]);
  expect(await refusedAs(serverId, 'power-on')).toBe('422 server_not_operable');
  await world.api.rows("UPDATE servers SET status = 'active' WHERE id = $1", [serverId]);
  await world.project.admin('DELETE', `/servers/${machineId}`);
  expect(await refusedAs(serverId, 'power-on')).toBe('422 server_not_operable');
  expect(await toldOf(machineId)).toEqual([]);
});

it('fails if the name of a sandbox server asks for it, and sends nothing to the provider', async () => {
  const caller = { ...world.caller, mode: 'sandbox' as const };
  const { serverId, machineId } = await makeDisk(world, { name: 'fail_power' }, caller);
  expect(await carryOut(serverId, 'reboot', {}, { caller })).toMatchObject({
    status: 'failed',
    error: { code: 'power_failed' },
  });
  expect(await read(serverId, { caller })).toMatchObject({ power_state: 'on', operable: true });
  expect(await toldOf(machineId)).toEqual([]);
});
