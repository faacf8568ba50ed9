import { mkdtempSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type EmulatorAdmin, emulatorAdmin } from '@drydock/emulators';
import { closeServer, listen } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import type { Accepted, Change, MachineOrder, ProviderAction } from '../src/providers/compute.types';
import { type Closing, type ComputeDriver, ComputeError } from '../src/providers/compute-provider';

export type Driver = ComputeDriver & Closing;
export interface DriverTweaks {
  baseUrl?: string;
  deadlineMs?: number;
  account?: 'one' | 'other' | 'nobody';
}

/** The facts about one provider and its emulator that the contract tests need. */
export interface Rig {
  name: string;
  create(stateDir: string, adminToken: string): Server;
  driver(url: string, tweaks: DriverTweaks): Driver;
  order(): MachineOrder;
  /** An order of a machine whose guest does not shut down on request. */
  deafOrder(): MachineOrder;
  /** Whether the guest of a machine from `order` shuts down on request. */
  hasGuest: boolean;
  /** The call that begins a rollback. The next two fields are the calls that read a machine and an action. */
  rollbackCall: { method: string; path: string };
  readMachineCall: { method: string; path: string };
  readActionCall: { method: string; path: string };
  createPath: string;
  /** The path of the calls that cut the power or reset the machine. */
  powerPath: string;
  snapshotPath: string;
  rollbackOp: string;
  /** Fields that turn an answer about an action into an answer about another machine. */
  foreignAction: Record<string, unknown>;
  breakSnapshot(admin: EmulatorAdmin, machineId: string, snapshotId: string): Promise<void>;
  /** Protects the machine from deletion, as staff do; null if the provider has no such protection. */
  protect: ((admin: EmulatorAdmin, machineId: string) => Promise<void>) | null;
  lockHidden(admin: EmulatorAdmin, machineId: string, isLocked: boolean): Promise<void>;
  vanish(admin: EmulatorAdmin, machineId: string): Promise<void>;
}

/** A provider that is not called over a network. The rig opens its own world, and no connection can fail. */
export type HostRig = Pick<
  Rig,
  'name' | 'order' | 'deafOrder' | 'hasGuest' | 'rollbackOp' | 'breakSnapshot' | 'protect' | 'lockHidden' | 'vanish'
> & {
  open(): Promise<RigWorld>;
};

export interface RigWorld {
  admin: EmulatorAdmin;
  driver: Driver;
  open(tweaks?: DriverTweaks): Driver;
  /**
   * Stops the emulator and starts a new one on the same state. A QEMU host only kills the processes of its machines.
   */
  restart(): Promise<void>;
  url(): string;
  close(): Promise<void>;
}

const adminToken = 'ab'.repeat(32);

export async function openRig(rig: Rig | HostRig): Promise<RigWorld> {
  if ('open' in rig) return await rig.open();
  const stateDir = mkdtempSync(path.join(tmpdir(), 'drydock-emulator-'));
  let server = rig.create(stateDir, adminToken);
  let { url, port } = await listen(server, 0);
  const drivers: Driver[] = [];
  const open = (tweaks: DriverTweaks = {}): Driver => {
    const driver = rig.driver(tweaks.baseUrl ?? url, tweaks);
    drivers.push(driver);
    return driver;
  };
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await closeServer(server);
  };
  return {
    admin: emulatorAdmin(url, adminToken),
    driver: open(),
    open,
    url: () => url,
    restart: async () => {
      await stop();
      server = rig.create(stateDir, adminToken);
      ({ url, port } = await listen(server, port));
    },
    close: async () => {
      await Promise.all(drivers.map((driver) => driver.close()));
      await stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

/** The error with which a driver's call rejects. Fails the test if the call resolves. */
export async function refusalOf(work: Promise<unknown>): Promise<ComputeError> {
  const outcome: unknown = await work.then(
    (value) => new Error(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (outcome instanceof ComputeError) return outcome;
  throw outcome;
}

/** Advances the emulator's time until the action has ended, by at most 20 minutes. Null if there is no action. */
export async function ended(
  { admin, driver }: RigWorld,
  { machineId, actionId }: Accepted,
): Promise<ProviderAction | null> {
  if (actionId === null) return null;
  for (let polls = 0; polls < 20; polls += 1) {
    await admin.changeClock({ advanceSeconds: 60 });
    const action = await driver.readAction(machineId, actionId);
    if (action.state !== 'running') return action;
  }
  throw new Error('the action does not end');
}

export async function carryOut(world: RigWorld, change: Change): Promise<Accepted> {
  const accepted = await world.driver.send(change, await world.driver.prepare(change));
  const action = await ended(world, accepted);
  if (action !== null && action.state !== 'succeeded') throw new Error(action.failure?.internal ?? 'failed');
  return accepted;
}

export const reference = (): string => uuidv7();

export async function orderMachine(world: RigWorld, order: MachineOrder): Promise<string> {
  const { machineId } = await carryOut(world, { kind: 'create', reference: reference(), order });
  await carryOut(world, { kind: 'start', reference: reference(), machineId, order });
  return machineId;
}

export async function takeSnapshot(world: RigWorld, machineId: string): Promise<string> {
  const { snapshotId } = await carryOut(world, {
    kind: 'take_snapshot',
    reference: reference(),
    machineId,
    description: 'before the update',
  });
  if (snapshotId === null) throw new Error('a snapshot has an id');
  return snapshotId;
}
