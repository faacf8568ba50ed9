/**
 * Boots a guest system.
 *
 * @tier long
 * @processes
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { type GuestConsole, openConsole } from '../../../test/guest-console';
import { guestImage, hasGuest, needsGuest } from '../../../test/qemu-host';
import { clearHost } from '../../../test/qemu-rig';
import type { Change } from '../compute.types';
import { qemuCompute } from './compute-provider.qemu';

const folder = mkdtempSync(path.join(tmpdir(), 'drydock-guest-'));
const open = () =>
  qemuCompute({
    folder,
    zone: 'here',
    images: { guest: guestImage },
    sizes: { small: { cpus: 1, memoryMb: 128, diskGb: 1 } },
  });
const consoles: GuestConsole[] = [];
afterAll(async () => {
  for (const { close } of consoles) close();
  await clearHost(folder);
});

/** Makes a change with a new driver, which knows only the content of the folder. */
async function carryOut(change: Change): Promise<string | null> {
  const { actionId, machineId, snapshotId } = await open().send(change, await open().prepare(change));
  const look = async () => {
    const action = actionId === null ? null : await open().readAction(machineId, actionId);
    return action?.state !== 'running' && { action };
  };
  const { action } = await until(look, { timeoutMs: 120_000, everyMs: 50, what: change.kind });
  expect(action?.failure ?? null).toBeNull();
  return snapshotId;
}

const guestOf = async (machineId: string): Promise<GuestConsole> => {
  const guest = await openConsole(path.join(folder, 'machines', machineId));
  consoles.push(guest);
  return guest;
};

const describeGuest = hasGuest() ? describe : describe.skip;

describeGuest(needsGuest('a real machine'), () => {
  it('that is rolled back reads the content of the snapshot from its disk, and nothing that was written since', async () => {
    const order = { name: uuidv7(), spec: 'small', image: 'guest', zone: 'here', labels: {} };
    const machineId = order.name;
    await carryOut({ kind: 'create', reference: uuidv7(), order });
    await carryOut({ kind: 'start', reference: uuidv7(), machineId, order });
    const guest = await guestOf(machineId);
    await guest.run('echo before > /srv/state; sync');
    const snapshotId = await carryOut({ kind: 'take_snapshot', reference: uuidv7(), machineId, description: '' });
    await guest.run('echo after > /srv/state; echo new > /srv/new; sync');
    expect(await guest.run('cat /srv/state /srv/new')).toMatch(/^after\s+new$/);

    await carryOut({ kind: 'rollback', reference: uuidv7(), machineId, snapshotId: snapshotId ?? '' });
    expect(await open().readMachine(machineId)).toMatchObject({
      powerState: 'on',
      vendorStatus: 'running',
      isLocked: false,
    });
    const again = await guestOf(machineId);
    expect(await again.run('cat /srv/state; ls /srv')).toMatch(/^before\s+lost\+found\s+state$/);

    // The owner switches the machine off from inside. A shutdown by the owner must not count as a crash, so the machine
    // stays off.
    again.say('poweroff -f');
    await until(async () => (await open().readMachine(machineId))?.vendorStatus === 'shutdown', { timeoutMs: 60_000 });
    expect(await open().listMachines()).toMatchObject([{ id: machineId, powerState: 'off', isLocked: false }]);
    expect(await open().readRunningAction(machineId)).toBeNull();

    // A machine that is switched on boots from its disk.
    await carryOut({ kind: 'power_on', reference: uuidv7(), machineId });
    const booted = await guestOf(machineId);
    expect(await booted.run('cat /srv/state')).toBe('before');
    // A machine that is shutting down gets time, and is not started again.
    const off = carryOut({ kind: 'power_off', reference: uuidv7(), machineId, isForced: false, guestSeconds: 120 });
    await until(async () => (await open().readMachine(machineId))?.powerState === 'stopping', { timeoutMs: 60_000 });
    booted.say('poweroff -f');
    await off;
    expect(await open().listMachines()).toMatchObject([
      { id: machineId, vendorStatus: 'off', powerState: 'off', isLocked: false },
    ]);
  });
});
