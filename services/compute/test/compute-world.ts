import type { Caller } from '@drydock/service/access';
import type { CallOptions } from '@drydock/service/testing/service-api';
import { openServiceWorld, type ServiceWorld } from '@drydock/service/testing/service-world';
import type { QueueBackend } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { compute, impatient, rangeSettings } from './compute-api';
import { type GivenServer, givenServer } from './given-server';
import { type HetznerProject, openHetznerProject } from './hetzner-project';

export interface ComputeWorld extends ServiceWorld {
  project: HetznerProject;
}

/**
 * Opens this service's world with an emulator of Hetzner Cloud as the target `fsn`. `target` changes the configuration
 * of `fsn`. `more` has further live targets by name.
 */
export async function openWorld(
  backend: QueueBackend,
  caller: Caller,
  { clockScale = 40, target = impatient as object, more = {} } = {},
): Promise<ComputeWorld> {
  const project = await openHetznerProject(clockScale);
  const world = await openServiceWorld(compute, {
    backend,
    caller,
    environment: rangeSettings({
      targets: { fsn: project.target(target), ...more },
      sandboxTargets: { fsn: project.target(target, 'sandbox') },
    }),
    workers: { RECONCILE_SECONDS: '3600' },
  });
  // The first connection under load may take longer than the time limit of a request.
  await until(async () => (await world.api.call('GET', '/v1/compute/servers')).status === 200, {
    timeoutMs: 30_000,
    what: 'a warm pool',
  });
  return {
    ...world,
    project,
    close: async () => {
      await world.close();
      await project.close();
    },
  };
}

export interface Disk {
  serverId: string;
  machineId: string;
  snapshotId: string;
}

/**
 * Makes a server whose disk has "old", with a snapshot that has "new". A rollback to the snapshot changes the disk to
 * "new".
 */
export async function makeDisk(
  { api, caller, project }: ComputeWorld,
  given: GivenServer = {},
  owner: Caller = caller,
): Promise<Disk> {
  const id = uuidv7();
  const machineId = await project.makeMachine({ mode: owner.mode, name: id });
  const serverId = await givenServer(api, owner, { id, machineId, ...given });
  await project.writeDisk(machineId, 'new');
  const snapshotId = await project.makeSnapshot(machineId, '', owner.mode);
  await project.writeDisk(machineId, 'old');
  return { serverId, machineId, snapshotId };
}

export const rollBack = ({ api }: ComputeWorld, { serverId, snapshotId }: Disk, options: CallOptions = {}) =>
  api.call('POST', `/v1/compute/servers/${serverId}/snapshots/${snapshotId}`, options);
