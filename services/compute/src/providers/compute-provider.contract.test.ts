import { hetznerRig } from '../../test/hetzner-rig';
import {
  carryOut,
  ended,
  type HostRig,
  openRig,
  orderMachine,
  type Rig,
  type RigWorld,
  reference,
  refusalOf,
  takeSnapshot,
} from '../../test/provider-rig';
import { proxmoxRig } from '../../test/proxmox-rig';
import { hasQemu, needsQemu } from '../../test/qemu-host';
import { qemuRig } from '../../test/qemu-rig';
import type { Change } from './compute.types';

/** The drivers under test. All drivers pass the same tests, so a new driver needs only a line here. */
const rigs: ReadonlyArray<Rig | HostRig> = [hetznerRig(100_000), proxmoxRig(), ...(hasQemu() ? [qemuRig()] : [])];

const describeQemu = hasQemu() ? describe : describe.skip;
describeQemu(needsQemu('the compute provider qemu'), () => {
  it('keeps every promise of the contract below', () => expect(rigs.map(({ name }) => name)).toContain('qemu'));
});

describe.each(rigs)('the compute provider $name', (rig) => {
  let world: RigWorld;
  beforeAll(async () => {
    world = await openRig(rig);
  });
  afterAll(() => world.close());
  afterEach(() => world.admin.clearFaults());

  /** Creates a machine with a snapshot. `/srv/state` contains `before` in the snapshot, and `after` on the disk. */
  const changedMachine = async (): Promise<{ machineId: string; snapshotId: string; rollback: Change }> => {
    const machineId = await orderMachine(world, rig.order());
    await world.admin.writeDisk(machineId, '/srv/state', 'before');
    const snapshotId = await takeSnapshot(world, machineId);
    await world.admin.writeDisk(machineId, '/srv/state', 'after');
    return { machineId, snapshotId, rollback: { kind: 'rollback', reference: reference(), machineId, snapshotId } };
  };
  const rollbacksOf = async (machineId: string) =>
    (await world.admin.readLedger()).filter(({ resource, op }) => resource === machineId && op === rig.rollbackOp);

  it('makes a machine that runs, is found by its name, and has its size, zone and image', async () => {
    const order = rig.order();
    const machineId = await orderMachine(world, order);
    const machine = await world.driver.findMachine(order.name);
    expect(machine).toMatchObject({
      id: machineId,
      name: order.name,
      powerState: 'on',
      vendorStatus: 'running',
      isLocked: false,
    });
    expect(machine).toMatchObject({ spec: order.spec, zone: order.zone, image: order.image });
    expect(await world.driver.readMachine(machineId)).toEqual(machine);
    expect((await world.driver.listMachines()).map(({ id }) => id)).toContain(machineId);
    expect(await world.driver.findMachine('nobody')).toBeNull();
  });

  it('lets the ordered SSH keys sign in as root, or refuses the order if it cannot', async () => {
    const sshKeys = ['ssh-ed25519 AAAAC3Nz/+anna== Anna’s laptop, 50 %', 'ssh-ed25519 AAAAC3NzBen ben@example.com'];
    const change: Change = { kind: 'create', reference: reference(), order: { ...rig.order(), sshKeys } };
    if (!world.driver.capabilities.includes('compute:ssh_keys')) {
      const checkpoint = await world.driver.prepare(change);
      expect((await refusalOf(world.driver.send(change, checkpoint))).reason).toBe('unsupported');
      return;
    }
    const machineId = await orderMachine(world, change.order);
    expect(await world.admin.readDisk(machineId, '/root/.ssh/authorized_keys')).toBe(`${sshKeys.join('\n')}\n`);
  });

  it('rolls a machine back once: the disk has the content of the snapshot, and the machine runs', async () => {
    const { machineId, snapshotId, rollback } = await changedMachine();
    const sent = await world.driver.send(rollback, await world.driver.prepare(rollback));
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'rebooting', isLocked: true });
    expect(await world.driver.readRunningAction(machineId)).toMatchObject({ id: sent.actionId, state: 'running' });
    expect(await ended(world, sent)).toMatchObject({ state: 'succeeded', failure: null });
    expect(await world.admin.readDisk(machineId, '/srv/state')).toBe('before');
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', isLocked: false });
    expect(await world.driver.readSnapshot(machineId, snapshotId)).toMatchObject({
      status: 'available',
      description: 'before the update',
    });
    expect(await rollbacksOf(machineId)).toHaveLength(1);
  });

  it('lists the snapshots of one machine, newest first, and of no other', async () => {
    const [machineId, neighbourId] = [await orderMachine(world, rig.order()), await orderMachine(world, rig.order())];
    const first = await takeSnapshot(world, machineId);
    await takeSnapshot(world, neighbourId);
    const second = await takeSnapshot(world, machineId);
    expect((await world.driver.listSnapshots(machineId)).map(({ id }) => id)).toEqual([second, first]);
    expect((await world.driver.listSnapshots(machineId)).every(({ status }) => status === 'available')).toBe(true);
  });

  it("finds nothing of another account's machines and snapshots, and cannot change them", async () => {
    const { machineId, snapshotId, rollback } = await changedMachine();
    const stranger = world.open({ account: 'other' });
    expect(await stranger.readMachine(machineId)).toBeNull();
    expect(await stranger.readSnapshot(machineId, snapshotId)).toBeNull();
    expect((await stranger.listMachines()).map(({ id }) => id)).not.toContain(machineId);
    expect((await refusalOf(stranger.send(rollback, await world.driver.prepare(rollback)))).reason).toBe(
      'machine_not_found',
    );
    expect(await world.admin.readDisk(machineId, '/srv/state')).toBe('after');
  });

  it("never sends a rollback to another machine's snapshot", async () => {
    const { rollback: theirs } = await changedMachine();
    const mine = await orderMachine(world, rig.order());
    const mixed = { ...theirs, machineId: mine };
    expect((await refusalOf(world.driver.send(mixed, await world.driver.prepare(mixed)))).reason).toBe(
      'snapshot_not_found',
    );
    expect(await rollbacksOf(mine)).toEqual([]);
  });

  it('never sends a rollback to a snapshot that is not ready', async () => {
    const { machineId, snapshotId, rollback } = await changedMachine();
    await rig.breakSnapshot(world.admin, machineId, snapshotId);
    expect((await world.driver.readSnapshot(machineId, snapshotId))?.status).toMatch(/^(creating|unavailable)$/);
    expect((await refusalOf(world.driver.send(rollback, await world.driver.prepare(rollback)))).reason).toBe(
      'snapshot_not_ready',
    );
    expect(await rollbacksOf(machineId)).toEqual([]);
  });

  it('refuses as locked while another action locks the machine, and is accepted afterwards', async () => {
    const { machineId, rollback } = await changedMachine();
    await rig.lockHidden(world.admin, machineId, true);
    const refusal = await refusalOf(world.driver.send(rollback, await world.driver.prepare(rollback)));
    expect([refusal.reason, refusal.mayPass]).toEqual(['locked', true]);
    expect(await rollbacksOf(machineId)).toEqual([]);
    await rig.lockHidden(world.admin, machineId, false);
    await carryOut(world, rollback);
    expect(await rollbacksOf(machineId)).toHaveLength(1);
  });

  it('deletes a snapshot of this machine, and never one of another machine', async () => {
    const { machineId, snapshotId } = await changedMachine();
    const neighbourId = await orderMachine(world, rig.order());
    await carryOut(world, { kind: 'delete_snapshot', reference: reference(), machineId: neighbourId, snapshotId });
    expect(await world.driver.readSnapshot(machineId, snapshotId)).not.toBeNull();
    const deletion: Change = { kind: 'delete_snapshot', reference: reference(), machineId, snapshotId };
    const checkpoint = await world.driver.prepare(deletion);
    expect(await world.driver.find(deletion, checkpoint)).toBeNull();
    await carryOut(world, deletion);
    expect(await world.driver.readSnapshot(machineId, snapshotId)).toBeNull();
    expect(await world.driver.find(deletion, checkpoint)).toMatchObject({ machineId });
    await carryOut(world, deletion);
  });

  const told = async (machineId: string): Promise<number> =>
    (await world.admin.readLedger()).filter(({ resource }) => resource === machineId).length;
  const force = { isForced: true, guestSeconds: 1 } as const;

  it('cuts the power and gives it back, with one call each, and restarts only a running machine', async () => {
    const machineId = await orderMachine(world, rig.order());
    const before = await told(machineId);
    const off: Change = { kind: 'power_off', reference: reference(), machineId, ...force };
    await carryOut(world, off);
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'off', isLocked: false });
    expect((await carryOut(world, { ...off, reference: reference() })).actionId).toBeNull();
    const reboot: Change = { kind: 'reboot', reference: reference(), machineId, ...force };
    expect((await refusalOf(world.driver.send(reboot, await world.driver.prepare(reboot)))).reason).toBe('not_running');
    const on: Change = { kind: 'power_on', reference: reference(), machineId };
    await carryOut(world, on);
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on' });
    expect((await carryOut(world, { ...on, reference: reference() })).actionId).toBeNull();
    await carryOut(world, reboot);
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on' });
    expect((await told(machineId)) - before).toBe(3);
  });

  it('asks the guest to shut down, and leaves a machine running whose guest ignores the request', async () => {
    const softly = (machineId: string): Change => ({
      kind: 'power_off',
      reference: reference(),
      machineId,
      isForced: false,
      guestSeconds: 1,
    });
    const deafId = await orderMachine(world, rig.deafOrder());
    const change = softly(deafId);
    const end = await ended(world, await world.driver.send(change, await world.driver.prepare(change)));
    if (end?.state !== 'succeeded')
      expect(end).toMatchObject({ state: 'failed', failure: { reason: 'guest_unresponsive' } });
    expect(await world.driver.readMachine(deafId)).toMatchObject({ powerState: 'on', isLocked: false });
    if (!rig.hasGuest) return;
    const machineId = await orderMachine(world, rig.order());
    await carryOut(world, softly(machineId));
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'off' });
  });

  it('deletes a machine, finds the deletion afterwards, and accepts it again without an error', async () => {
    const order = rig.order();
    const machineId = await orderMachine(world, order);
    const deletion: Change = { kind: 'delete', reference: reference(), machineId, name: order.name };
    const checkpoint = await world.driver.prepare(deletion);
    expect(await world.driver.find(deletion, checkpoint)).toBeNull();
    await carryOut(world, deletion);
    expect(await world.driver.readMachine(machineId)).toBeNull();
    expect(await world.driver.find(deletion, checkpoint)).toMatchObject({ machineId });
    expect((await world.driver.send(deletion, checkpoint)).machineId).toBe(machineId);
  });

  it('refuses to delete a machine of another name and a locked or protected machine, and does not stop it', async () => {
    const order = rig.order();
    const machineId = await orderMachine(world, order);
    const before = await told(machineId);
    const deletion: Change = { kind: 'delete', reference: reference(), machineId, name: order.name };
    const checkpoint = await world.driver.prepare(deletion);
    const reasonFor = async (change: Change) => (await refusalOf(world.driver.send(change, checkpoint))).reason;
    expect(await reasonFor({ ...deletion, name: reference() })).toBe('foreign');
    await rig.lockHidden(world.admin, machineId, true);
    expect(await reasonFor(deletion)).toBe('locked');
    await rig.lockHidden(world.admin, machineId, false);
    if (rig.protect !== null) {
      await rig.protect(world.admin, machineId);
      expect(await world.driver.readMachine(machineId)).toMatchObject({ isDeleteProtected: true });
      expect(await reasonFor(deletion)).toBe('protected');
    }
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on' });
    expect(await told(machineId)).toBe(before);
  });

  it('reports a machine that has vanished as missing', async () => {
    const { machineId, rollback } = await changedMachine();
    const checkpoint = await world.driver.prepare(rollback);
    await rig.vanish(world.admin, machineId);
    expect(await world.driver.readMachine(machineId)).toBeNull();
    expect(await world.driver.listSnapshots(machineId)).toEqual(expect.any(Array));
    expect((await refusalOf(world.driver.send(rollback, checkpoint))).reason).toBe('machine_not_found');
  });

  it('reads more machines than fit on a page', async () => {
    const many = world.open({ account: 'other' });
    const orders = Array.from({ length: 60 }, () => rig.order());
    for (const order of orders) {
      const change: Change = { kind: 'create', reference: reference(), order };
      await many.send(change, await many.prepare(change));
    }
    // The creations must end first, because a machine that is still being created may have no name.
    await world.admin.changeClock({ advanceSeconds: 60 });
    const names = (await many.listMachines()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(orders.map(({ name }) => name)));
  });

  it('goes on with a rollback that began before the provider was restarted', async () => {
    const { machineId, rollback } = await changedMachine();
    const sent = await world.driver.send(rollback, await world.driver.prepare(rollback));
    await world.restart();
    expect(await ended(world, sent)).toMatchObject({ state: 'succeeded' });
    expect(await world.admin.readDisk(machineId, '/srv/state')).toBe('before');
  });
});
