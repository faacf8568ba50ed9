import {
  carryOut,
  ended,
  openRig,
  orderMachine,
  type RigWorld,
  reference,
  refusalOf,
  takeSnapshot,
} from '../../../test/provider-rig';
import { proxmoxRig } from '../../../test/proxmox-rig';
import type { Change } from '../compute.types';
import { refusalIn } from './proxmox-reader';

const rig = proxmoxRig();
let world: RigWorld;
beforeAll(async () => {
  world = await openRig(rig);
});
afterAll(() => world.close());

const patch = (machineId: string, change: object) => world.admin.call('PATCH', `servers/${machineId}`, change);
const rollbackTo = (machineId: string, snapshotId: string): Change => ({
  kind: 'rollback',
  reference: reference(),
  machineId,
  snapshotId,
});
const send = async (change: Change) => world.driver.send(change, await world.driver.prepare(change));
const rollbacks = async (machineId: string) =>
  (await world.admin.readLedger()).filter(({ op, resource }) => op === 'qmrollback' && resource === machineId);

it('refuses to roll back past newer snapshots, and names them, on a storage that can only return to the newest', async () => {
  for (const [image, isRefused] of [
    ['debian-12-zfs', true],
    ['debian-12', false],
  ] as const) {
    const machineId = await orderMachine(world, { ...rig.order(), image });
    const [oldest, newest] = [await takeSnapshot(world, machineId), await takeSnapshot(world, machineId)];
    expect((await world.driver.readSnapshot(machineId, oldest))?.newerIds).toEqual(isRefused ? [newest] : []);
    expect((await world.driver.readSnapshot(machineId, newest))?.newerIds).toEqual([]);
    if (isRefused) expect((await refusalOf(send(rollbackTo(machineId, oldest)))).reason).toBe('newer_snapshots');
    else expect(await ended(world, await send(rollbackTo(machineId, oldest)))).toMatchObject({ state: 'succeeded' });
    expect(await rollbacks(machineId)).toHaveLength(isRefused ? 0 : 1);
  }
});

it('leaves a machine off after its rollback that was off before', async () => {
  const machineId = await orderMachine(world, rig.order());
  const snapshotId = await takeSnapshot(world, machineId);
  await patch(machineId, { status: 'stopped', qmpstatus: 'stopped' });
  expect(await ended(world, await send(rollbackTo(machineId, snapshotId)))).toMatchObject({ state: 'succeeded' });
  expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'off', isLocked: false });
});

it('finds a machine that has moved to another node', async () => {
  const machineId = await orderMachine(world, rig.order());
  expect(await world.driver.readMachine(machineId)).toMatchObject({ zone: 'pve2' });
  await patch(machineId, { node: 'pve1' });
  expect(await world.driver.readMachine(machineId)).toMatchObject({ zone: 'pve1', powerState: 'on' });
  await takeSnapshot(world, machineId);
});

it('shows a paused machine as neither on nor off, and a machine without an agent without addresses', async () => {
  const machineId = await orderMachine(world, rig.order());
  const addresses = [expect.stringMatching(/^192\.0\.2\./), expect.stringMatching(/^2001:db8:/)];
  expect(await world.driver.readMachine(machineId)).toMatchObject({ addresses });
  await patch(machineId, { qmpstatus: 'paused', addresses: null });
  expect(await world.driver.readMachine(machineId)).toMatchObject({
    powerState: 'unknown',
    vendorStatus: 'running',
    addresses: [],
  });
});

it('makes one machine for an order that is sent twice, because the cluster refuses the second', async () => {
  const change: Change = { kind: 'create', reference: reference(), order: rig.order() };
  const first = await send(change);
  const refusal = await refusalOf(send(change));
  expect(refusal.reason).toBe('ambiguous');
  expect(await world.driver.find(change, await world.driver.prepare(change))).toMatchObject({
    machineId: first.machineId,
  });
  expect((await world.admin.readLedger()).filter(({ resource }) => resource === first.machineId)).toHaveLength(1);
});

it('gives a machine its ordered size', async () => {
  const machineId = await orderMachine(world, { ...rig.order(), spec: 'large' });
  // The provider's 80 GB are 80 times 2^30 bytes.
  expect(await world.driver.readMachine(machineId)).toMatchObject({ spec: 'large', diskGb: 85.9 });
});

/** Makes a machine that is not started yet, and returns the change that starts it. */
async function makeUnstarted(labels: Record<string, string> = {}): Promise<{ machineId: string; start: Change }> {
  const order = { ...rig.order(), spec: 'large', labels };
  const { machineId } = await carryOut(world, { kind: 'create', reference: reference(), order });
  return { machineId, start: { kind: 'start', reference: reference(), machineId, order } };
}
const opsOn = async (machineId: string): Promise<string[]> =>
  (await world.admin.readLedger()).filter(({ resource }) => resource === machineId).map(({ op }) => op);

it('starts a machine only once its disk has grown, and does not grow the disk twice', async () => {
  const { machineId, start } = await makeUnstarted({ 'emulator.slow-seconds': '600' });
  for (let tried = 0; tried < 2; tried += 1) expect((await refusalOf(send(start))).reason).toBe('locked');
  expect(await opsOn(machineId)).toEqual(['qmclone', 'resize']);
  await world.admin.changeClock({ advanceSeconds: 1_000 });
  await carryOut(world, start);
  expect(await opsOn(machineId)).toEqual(['qmclone', 'resize', 'qmstart']);
  expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', diskGb: 85.9 });
});

it('does not start a machine whose disk cannot grow', async () => {
  const { machineId, start } = await makeUnstarted({ 'emulator.fail': 'resize' });
  for (let tried = 0; tried < 2; tried += 1) expect((await refusalOf(send(start))).reason).toBe('rejected');
  expect(await opsOn(machineId)).toEqual(['qmclone', 'resize']);
  expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'off' });
});

it('gives a machine its ordered size at Proxmox VE 7, which grows a disk within the call', async () => {
  await world.admin.call('PATCH', 'cluster', { resizesAtOnce: true });
  const { machineId, start } = await makeUnstarted();
  await carryOut(world, start);
  await world.admin.call('PATCH', 'cluster', { resizesAtOnce: false });
  expect(await opsOn(machineId)).toEqual(['qmclone', 'qmstart']);
  expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', diskGb: 85.9 });
});

it('refuses to start a machine whose ordered size is not configured any more', async () => {
  const order = rig.order();
  const create: Change = { kind: 'create', reference: reference(), order };
  const { machineId } = await carryOut(world, create);
  const start = (spec: string): Change => ({
    kind: 'start',
    reference: reference(),
    machineId,
    order: { ...order, spec },
  });
  for (const spec of ['gone', 'toString']) expect((await refusalOf(send(start(spec)))).reason).toBe('order_refused');
  expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'off' });
  await carryOut(world, start(order.spec));
  expect(await send(start('gone'))).toMatchObject({ actionId: null });
});

it('does not start a machine with SSH keys whose template lacks a drive of cloud-init', async () => {
  const order = { ...rig.order(), image: 'debian-12-zfs', sshKeys: ['ssh-ed25519 AAAAC3NzAnna'] };
  const { machineId } = await carryOut(world, { kind: 'create', reference: reference(), order });
  const start: Change = { kind: 'start', reference: reference(), machineId, order };
  expect((await refusalOf(send(start))).reason).toBe('order_refused');
  expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'off' });
});

it('refuses a rebuild, which this provider does not support', async () => {
  const machineId = await orderMachine(world, rig.order());
  expect(world.driver.capabilities).not.toContain('compute:rebuild');
  expect(
    (await refusalOf(send({ kind: 'rebuild', reference: reference(), machineId, image: 'debian-12' }))).reason,
  ).toBe('unsupported');
});

it('finds the machine of a lost order while it is still being cloned and has no name', async () => {
  const order = rig.order();
  const change: Change = { kind: 'create', reference: reference(), order };
  const { machineId } = await send(change);
  expect((await world.driver.listMachines()).map(({ name }) => name)).not.toContain(order.name);
  expect(await world.driver.findMachine(order.name)).toMatchObject({ id: machineId, isLocked: true });
  const found = await world.driver.find(change, await world.driver.prepare(change));
  if (found === null) throw new Error('nothing was found');
  expect(await ended(world, found)).toMatchObject({ state: 'succeeded' });
  expect(await world.driver.findMachine(order.name)).toMatchObject({
    id: machineId,
    name: order.name,
    isLocked: false,
  });
});

it('does not mistake a rollback by staff for its own, whose request was lost', async () => {
  const machineId = await orderMachine(world, rig.order());
  const [older, newer] = [await takeSnapshot(world, machineId), await takeSnapshot(world, machineId)];
  const change = rollbackTo(machineId, newer);
  const checkpoint = await world.driver.prepare(change);
  await world.admin.orderFault({ ...rig.rollbackCall, answer: { kind: 'reset' } });
  expect((await refusalOf(world.driver.send(change, checkpoint))).reason).toBe('ambiguous');
  await world.admin.call('POST', `servers/${machineId}/snapshots/${older}/rollback`);
  expect(await world.driver.readRunningAction(machineId)).toMatchObject({ command: 'qmrollback' });
  expect(await world.driver.find(change, checkpoint)).toBeNull();
  await world.admin.changeClock({ advanceSeconds: 60 });
});

it('finds its rollback on the node where it was sent, although the machine has moved since', async () => {
  const machineId = await orderMachine(world, rig.order());
  const change = rollbackTo(machineId, await takeSnapshot(world, machineId));
  const checkpoint = await world.driver.prepare(change);
  const sent = await world.driver.send(change, checkpoint);
  expect(await ended(world, sent)).toMatchObject({ state: 'succeeded' });
  await patch(machineId, { node: 'pve1' });
  expect(await world.driver.find(change, checkpoint)).toEqual(sent);
  expect((await refusalOf(world.driver.send(change, checkpoint))).reason).toBe('rejected');
  expect(await rollbacks(machineId)).toHaveLength(1);
});

it('refuses to take or delete a snapshot of a locked machine, because the cluster would accept it and fail', async () => {
  const machineId = await orderMachine(world, rig.order());
  const snapshotId = await takeSnapshot(world, machineId);
  await rig.lockHidden(world.admin, machineId, true);
  const changes: Change[] = [
    { kind: 'take_snapshot', reference: reference(), machineId, description: '' },
    { kind: 'delete_snapshot', reference: reference(), machineId, snapshotId },
  ];
  for (const change of changes) expect((await refusalOf(send(change))).reason).toBe('locked');
});

const changeNode = (node: string, change: object) => world.admin.call('PATCH', `nodes/${node}`, change);

it('lists the machines on other nodes while one node does not answer, and cannot read those on it', async () => {
  const [here, there] = [
    await orderMachine(world, { ...rig.order(), zone: 'pve1' }),
    await orderMachine(world, rig.order()),
  ];
  // This driver stops calling the node for a while after its failures, so the other tests do not use it.
  const driver = world.open();
  await rig.lockHidden(world.admin, there, true);
  await changeNode('pve2', { isDown: true });
  const outcomes = await Promise.allSettled([driver.listMachines(), refusalOf(driver.readMachine(there))]);
  await changeNode('pve2', { isDown: false });
  const [listing, refusal] = outcomes;
  const listed = listing.status === 'fulfilled' ? listing.value : [];
  const machines = new Map(listed.map((machine) => [machine.id, machine]));
  expect(machines.get(here)).toMatchObject({ powerState: 'on', vendorStatus: 'running' });
  const unknown = { powerState: 'unknown', vendorStatus: 'unknown', addresses: [], isLocked: true };
  expect(machines.get(there)).toMatchObject(unknown);
  expect(refusal).toMatchObject({ status: 'fulfilled', value: { reason: 'unavailable' } });
});

describe('while a node sends no statistics to its cluster, but answers', () => {
  const order = { ...rig.order(), labels: {} };
  let machineId = '';
  beforeAll(async () => {
    machineId = await orderMachine(world, order);
    await changeNode('pve2', { isSilent: true });
  });
  afterAll(() => changeNode('pve2', { isSilent: false }));

  it('reads, lists and finds a machine as it is', async () => {
    const machine = await world.driver.readMachine(machineId);
    expect(machine).toMatchObject({ name: order.name, powerState: 'on', vendorStatus: 'running', isLocked: false });
    expect(machine?.addresses).toHaveLength(2);
    expect(await world.driver.findMachine(order.name)).toEqual(machine);
    expect(await world.driver.findMachine('nobody')).toBeNull();
    const listed = (await world.driver.listMachines()).find(({ id }) => id === machineId);
    expect(listed).toMatchObject({ name: order.name, powerState: 'on', addresses: machine?.addresses });
  });

  it('starts a machine after its rollback that ran before', async () => {
    const snapshotId = await takeSnapshot(world, machineId);
    expect(await ended(world, await send(rollbackTo(machineId, snapshotId)))).toMatchObject({ state: 'succeeded' });
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on' });
  });

  it('deletes a machine that runs', async () => {
    await carryOut(world, { kind: 'delete', reference: reference(), machineId, name: order.name });
    expect(await world.driver.readMachine(machineId)).toBeNull();
  });
});

it.each([
  ['says nothing', { kind: 'silence' }],
  ['answers nonsense', { kind: 'fixed', status: 200, body: '{"data":"busy"}' }],
] as const)('reads a machine whose guest agent %s, without its addresses', async (_what, answer) => {
  const machineId = await orderMachine(world, rig.order());
  await world.admin.orderFault({ path: '/agent/', times: 3, answer });
  expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', addresses: [] });
  await world.admin.clearFaults();
});

it('shows public addresses, and no private or malformed ones', async () => {
  const machineId = await orderMachine(world, rig.order());
  // A guest can report any text after a `%`.
  await patch(machineId, {
    addresses: ['10.0.0.5', '172.17.0.1', '198.51.100.7', 'fd00::1', '2001:db8::7', `2001:db8::8%${'x'.repeat(200)}`],
  });
  expect((await world.driver.readMachine(machineId))?.addresses).toEqual(['198.51.100.7', '2001:db8::7']);
});

it.each([
  ['answer nonsense', { kind: 'fixed', status: 200, body: '{"data":{"result":"none"}}' }],
  ['say nothing', { kind: 'silence' }],
] as const)('does not count the cluster as unavailable because guest agents %s', async (_what, answer) => {
  for (let made = 0; made < 4; made += 1) await orderMachine(world, rig.order());
  const driver = world.open();
  await world.admin.orderFault({ path: '/agent/', times: 200, answer });
  const listed = await driver.listMachines();
  const machineId = listed.at(-1)?.id ?? '';
  expect(await driver.readMachine(machineId)).toMatchObject({ powerState: 'on', addresses: [] });
  expect(
    await refusalOf(driver.send(rollbackTo(machineId, 'none'), await driver.prepare(rollbackTo(machineId, 'none')))),
  ).toMatchObject({
    reason: 'snapshot_not_found',
  });
  await world.admin.clearFaults();
});

it('takes at most 64 different addresses from a guest', async () => {
  const machineId = await orderMachine(world, rig.order());
  const many = Array.from({ length: 20_000 }, (_, at) => `2001:db8::${(at % 10_000).toString(16)}`);
  await patch(machineId, { addresses: many });
  const { addresses = [] } = (await world.driver.readMachine(machineId)) ?? {};
  expect(addresses.length).toBeLessThanOrEqual(64);
  expect(addresses.slice(0, 2)).toEqual(['2001:db8::0', '2001:db8::1']);
  expect(new Set(addresses).size).toBe(addresses.length);
});

it('lists a machine that cannot be read as unknown, beside all others', async () => {
  const [well, ill] = [await orderMachine(world, rig.order()), await orderMachine(world, rig.order())];
  const driver = world.open();
  await world.admin.orderFault({
    path: `/qemu/${ill}/status/current$`,
    times: 50,
    answer: { kind: 'fixed', status: 596 },
  });
  const machines = new Map((await driver.listMachines()).map((machine) => [machine.id, machine]));
  expect(machines.get(well)).toMatchObject({ powerState: 'on', vendorStatus: 'running' });
  expect(machines.get(ill)).toMatchObject({ powerState: 'unknown', vendorStatus: 'unknown', addresses: [] });
  // If no machine can be read, the whole cluster counts as unavailable.
  await world.admin.clearFaults();
  await world.admin.orderFault({ path: '/status/current$', times: 500, answer: { kind: 'fixed', status: 596 } });
  expect((await refusalOf(driver.listMachines())).reason).toBe('unavailable');
  await world.admin.clearFaults();
});

it('still reads from the other nodes after many failed reads from one node', async () => {
  const [well, ill] = [
    await orderMachine(world, rig.order()),
    await orderMachine(world, { ...rig.order(), zone: 'pve1' }),
  ];
  const driver = world.open();
  await world.admin.orderFault({ path: '/nodes/pve1/', times: 100, answer: { kind: 'fixed', status: 596 } });
  for (let looks = 0; looks < 4; looks += 1)
    expect((await refusalOf(driver.readMachine(ill))).reason).toBe('unavailable');
  expect(await driver.readMachine(well)).toMatchObject({ powerState: 'on' });
  await world.admin.clearFaults();
});

it.each(['paused', 'io-error'])(
  'starts a machine after its rollback that was %s before, because it had a process',
  async (qmpstatus) => {
    const machineId = await orderMachine(world, rig.order());
    const snapshotId = await takeSnapshot(world, machineId);
    await patch(machineId, { qmpstatus });
    expect(await ended(world, await send(rollbackTo(machineId, snapshotId)))).toMatchObject({ state: 'succeeded' });
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', isLocked: false });
  },
);

it.each([
  ['VM is locked (backup)\n', 'locked'],
  ["snapshot 'x' does not exist", 'snapshot_not_found'],
  ['unable to rollback to incomplete snapshot (snapstate = prepare)', 'snapshot_not_ready'],
  ["can't rollback, 'x' is not most recent snapshot on 'zfs:vm-100-disk-0'", 'newer_snapshots'],
  ["you can't rollback if vm is a template", 'protected'],
  ["can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout", 'locked'],
  ["Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist", 'machine_not_found'],
])('recognises %j in a body, and in the status line, where older versions put it', (message, reason) => {
  const answer = { status: 500, headers: {}, text: '' };
  expect(refusalIn({ ...answer, statusText: 'Internal Server Error', json: { data: null, message } })?.reason).toBe(
    reason,
  );
  expect(refusalIn({ ...answer, statusText: message.trim(), json: { data: null } })?.reason).toBe(reason);
});
