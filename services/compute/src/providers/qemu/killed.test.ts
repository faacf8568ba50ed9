/**
 * Kills QEMU machines, and the processes of their jobs at many points of the work.
 *
 * @tier long
 * @processes
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type FaultMode, faultTokenName } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import { type RigWorld, reference, refusalOf } from '../../../test/provider-rig';
import { hasQemu, needsQemu } from '../../../test/qemu-host';
import { openHost, qemuRig } from '../../../test/qemu-rig';
import type { Accepted, Change, ProviderAction } from '../compute.types';
import { beginWork } from './compute-provider.qemu';
import { findPid } from './qemu-process';

const order = qemuRig().order;
const faults = mkdtempSync(path.join(tmpdir(), 'drydock-faults-'));
let world: RigWorld;
beforeAll(async () => {
  const environment = { PATH: process.env['PATH'] ?? '', DRYDOCK_FAULTS: faults };
  world = await openHost((machineFolder) => beginWork(machineFolder, environment));
});
afterAll(async () => {
  await world.close();
  rmSync(faults, { recursive: true });
});

const plan = (point: string, mode: FaultMode): void =>
  writeFileSync(path.join(faults, faultTokenName({ point, mode })), '');
const folderOf = (machineId: string): string => path.join(world.url(), 'one/machines', machineId);

/** Waits for the end of an action. Each read uses a new driver, like a worker that starts after the kill. */
const endOf = ({ machineId, actionId }: Accepted): Promise<ProviderAction> =>
  until(
    async () => {
      const action = await world.open().readAction(machineId, actionId ?? '');
      return action.state !== 'running' && action;
    },
    { timeoutMs: 120_000, everyMs: 50, what: `job ${actionId} of ${machineId}` },
  );

async function carryOut(change: Change): Promise<Accepted> {
  const accepted = await world.driver.send(change, await world.driver.prepare(change));
  if (accepted.actionId !== null) expect(await endOf(accepted)).toMatchObject({ state: 'succeeded' });
  return accepted;
}

/** Creates a running machine with a snapshot. The machine's disk had `before` at the snapshot and now has `after`. */
async function changedMachine(): Promise<Extract<Change, { kind: 'rollback' }>> {
  const { machineId } = await carryOut({ kind: 'create', reference: reference(), order: order() });
  await carryOut({ kind: 'start', reference: reference(), machineId, order: order() });
  await world.admin.writeDisk(machineId, '', 'before');
  const { snapshotId } = await carryOut({ kind: 'take_snapshot', reference: reference(), machineId, description: '' });
  await world.admin.writeDisk(machineId, '', 'after');
  return { kind: 'rollback', reference: reference(), machineId, snapshotId: snapshotId ?? '' };
}

const rollbacksOf = async (machineId: string) =>
  (await world.admin.readLedger()).filter(({ resource, op }) => resource === machineId && op === 'rollback');

/** Returns the pids of the machine's job processes. */
const workersOf = (machineId: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && commandOf(name).includes(`run-job.js\0${folderOf(machineId)}`))
    .map(Number);
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

const describeQemu = hasQemu() ? describe : describe.skip;

describeQemu(needsQemu('a machine of this host'), () => {
  it.each(['before_stop', 'before_apply', 'after_apply', 'before_start', 'before_end'])(
    'is rolled back once, and runs, although kill -9 met the work %s',
    async (point) => {
      const rollback = await changedMachine();
      const { machineId } = rollback;
      plan(`qemu.rollback.${point}`, 'kill');
      const checkpoint = await world.driver.prepare(rollback);
      const sent = await world.driver.send(rollback, checkpoint);
      expect(await endOf(sent)).toMatchObject({ state: 'succeeded', failure: null });
      expect(readdirSync(faults)).toEqual([]);
      expect(await world.admin.readDisk(machineId, '')).toBe('before');
      expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', isLocked: false });
      // A later attempt recognises the completed rollback and keeps what was written since.
      await world.admin.writeDisk(machineId, '', 'later');
      expect(await world.open().find(rollback, checkpoint)).toEqual(sent);
      expect(await world.open().send(rollback, checkpoint)).toEqual(sent);
      expect(await endOf(sent)).toMatchObject({ state: 'succeeded' });
      expect(await world.admin.readDisk(machineId, '')).toBe('later');
      expect(await rollbacksOf(machineId)).toHaveLength(1);
    },
  );

  it.each(['after_stop', 'before_start', 'before_end'])(
    'is restarted, and runs, although kill -9 met the work %s',
    async (point) => {
      const { machineId } = await changedMachine();
      plan(`qemu.reboot.${point}`, 'kill');
      const reboot: Change = { kind: 'reboot', reference: reference(), machineId, isForced: true, guestSeconds: 1 };
      const checkpoint = await world.driver.prepare(reboot);
      const sent = await world.driver.send(reboot, checkpoint);
      expect(await endOf(sent)).toMatchObject({ state: 'succeeded', failure: null });
      expect(readdirSync(faults)).toEqual([]);
      expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', isLocked: false });
      expect(await world.open().send(reboot, checkpoint)).toEqual(sent);
    },
  );

  it('keeps what is written after its rollback, although the work was killed before its end', async () => {
    const rollback = await changedMachine();
    const { machineId } = rollback;
    plan('qemu.rollback.before_end', 'kill');
    const sent = await world.driver.send(rollback, await world.driver.prepare(rollback));
    await until(() => readdirSync(faults).length === 0, { timeoutMs: 60_000 });
    await until(() => workersOf(machineId).length === 0, { timeoutMs: 60_000 });
    await world.admin.writeDisk(machineId, '', 'later');
    expect(await endOf(sent)).toMatchObject({ state: 'succeeded' });
    expect(await world.admin.readDisk(machineId, '')).toBe('later');
  });

  it('is left alone while the process that works on it is frozen, and rolled back once after that process is killed', async () => {
    const rollback = await changedMachine();
    const { machineId } = rollback;
    plan('qemu.rollback.before_apply', 'stop');
    const sent = await world.driver.send(rollback, await world.driver.prepare(rollback));
    await until(() => readdirSync(faults).length === 0, { timeoutMs: 60_000 });
    const [frozen] = workersOf(machineId);
    for (let looks = 0; looks < 5; looks += 1)
      expect(await world.open().readAction(machineId, sent.actionId ?? '')).toMatchObject({ state: 'running' });
    await until(() => workersOf(machineId).length === 1, { timeoutMs: 60_000 });
    expect(workersOf(machineId)).toEqual([frozen]);
    expect(await world.admin.readDisk(machineId, '')).toBe('after');
    if (frozen !== undefined) process.kill(frozen, 'SIGKILL');
    expect(await endOf(sent)).toMatchObject({ state: 'succeeded' });
    expect(await world.admin.readDisk(machineId, '')).toBe('before');
    expect(await rollbacksOf(machineId)).toHaveLength(1);
  });

  it('whose QEMU was killed keeps its disk, is shown as off, and runs after a rollback', async () => {
    const rollback = await changedMachine();
    const { machineId } = rollback;
    await world.restart();
    await until(async () => (await world.driver.readMachine(machineId))?.powerState === 'off', { timeoutMs: 60_000 });
    expect(await world.admin.readDisk(machineId, '')).toBe('after');
    await carryOut(rollback);
    expect(await world.admin.readDisk(machineId, '')).toBe('before');
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', isLocked: false });
  });

  it('runs after a rollback that was prepared while QEMU was too busy to answer', async () => {
    const rollback = await changedMachine();
    const { machineId } = rollback;
    const pid = await findPid(folderOf(machineId));
    if (pid === null) throw new Error('it has no process');
    process.kill(pid, 'SIGSTOP');
    const checkpoint = await world.driver.prepare(rollback).finally(() => process.kill(pid, 'SIGCONT'));
    expect(await endOf(await world.driver.send(rollback, checkpoint))).toMatchObject({ state: 'succeeded' });
    expect(await world.admin.readDisk(machineId, '')).toBe('before');
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'on', isLocked: false });
  });

  it('is started again after its host was restarted', async () => {
    const { machineId } = await changedMachine();
    await world.restart();
    await until(async () => (await world.driver.readMachine(machineId))?.vendorStatus === 'off', { timeoutMs: 60_000 });
    await world.driver.listMachines();
    await until(async () => (await world.driver.readMachine(machineId))?.powerState === 'on', { timeoutMs: 60_000 });
    expect(await world.admin.readDisk(machineId, '')).toBe('after');
  });

  it('stays off after its host was restarted, if it was powered off since, although it was off already', async () => {
    const { machineId } = await changedMachine();
    await world.restart();
    await until(async () => (await world.driver.readMachine(machineId))?.vendorStatus === 'off', { timeoutMs: 60_000 });
    await carryOut({ kind: 'power_off', reference: reference(), machineId, isForced: false, guestSeconds: 60 });
    await world.driver.listMachines();
    expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: 'off', isLocked: false });
  });

  it('accepts one of two rollbacks at once, and refuses the other for now', async () => {
    const rollback = await changedMachine();
    const other = { ...rollback, reference: reference() };
    const checkpoint = await world.driver.prepare(rollback);
    const outcomes = await Promise.allSettled([
      world.driver.send(rollback, checkpoint),
      world.open().send(other, checkpoint),
    ]);
    const [accepted, refused] = [
      outcomes.find(({ status }) => status === 'fulfilled'),
      outcomes.find(({ status }) => status === 'rejected'),
    ];
    expect(refused).toMatchObject({ reason: { reason: 'locked', mayPass: true } });
    if (accepted?.status === 'fulfilled') expect(await endOf(accepted.value)).toMatchObject({ state: 'succeeded' });
    expect(await rollbacksOf(rollback.machineId)).toHaveLength(1);
  });

  it('is made once for an order that is sent twice, and no other order gets its name', async () => {
    const change: Change = { kind: 'create', reference: reference(), order: order() };
    const checkpoint = await world.driver.prepare(change);
    expect(await world.driver.find(change, checkpoint)).toBeNull();
    plan('qemu.create.before_end', 'kill');
    const sent = await world.driver.send(change, checkpoint);
    expect(await world.open().send(change, checkpoint)).toEqual(sent);
    expect(await world.open().find(change, checkpoint)).toEqual(sent);
    expect(await endOf(sent)).toMatchObject({ state: 'succeeded' });
    expect((await refusalOf(world.driver.send({ ...change, reference: reference() }, checkpoint))).reason).toBe(
      'ambiguous',
    );
  });

  it('is refused for a size, an image or a zone that is not configured', async () => {
    const refusal = async (wish: object) => {
      const change: Change = { kind: 'create', reference: reference(), order: { ...order(), ...wish } };
      return (await refusalOf(world.driver.send(change, await world.driver.prepare(change)))).reason;
    };
    expect(await refusal({ spec: 'toString' })).toBe('order_refused');
    expect(await refusal({ image: 'none' })).toBe('order_refused');
    expect(await refusal({ zone: 'there' })).toBe('order_refused');
  });

  it('fails to be made if its image does not fit on its disk', async () => {
    const change: Change = { kind: 'create', reference: reference(), order: { ...order(), image: 'large' } };
    const sent = await world.driver.send(change, await world.driver.prepare(change));
    expect(await endOf(sent)).toMatchObject({ state: 'failed', failure: { reason: 'incompatible' } });
  });

  it('is neither found nor made by a name that leads out of its folder', async () => {
    expect(await world.driver.readMachine('../../one/machines')).toBeNull();
    const change: Change = { kind: 'create', reference: reference(), order: { ...order(), name: '../escaped' } };
    expect((await refusalOf(world.driver.send(change, await world.driver.prepare(change)))).reason).toBe(
      'order_refused',
    );
  });

  it('is deleted with its disk, although kill -9 met the deletion', async () => {
    const { machineId } = await carryOut({ kind: 'create', reference: reference(), order: order() });
    plan('qemu.delete.before_end', 'kill');
    const deletion: Change = { kind: 'delete', reference: reference(), machineId, name: machineId };
    await world.driver.send(deletion, await world.driver.prepare(deletion));
    await until(() => readdirSync(faults).length === 0, { timeoutMs: 60_000 });
    // No workflow waits for the job here. `listMachines`, which the reconciliation calls regularly, starts the work
    // again. Each call starts a process for the job, so calls in quick succession would slow down the process that does
    // the work.
    await until(
      async () =>
        !(await world.driver.listMachines()).some(({ id }) => id === machineId) &&
        !readdirSync(path.join(world.url(), 'one/machines')).includes(machineId),
      { timeoutMs: 60_000, everyMs: 500 },
    );
    expect(await world.driver.readMachine(machineId)).toBeNull();
  });
});
