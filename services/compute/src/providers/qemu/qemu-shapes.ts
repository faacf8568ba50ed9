import type { ProviderAction } from '../compute-change.types';
import type { Machine, MachineSnapshot, PowerState } from '../compute-machine.types';
import { type JobRecord, type MachineRecord, snapshotIdOf } from './qemu-records';

/** QEMU's run states; any other one is unknown to us as well. */
const powerStates: Readonly<Record<string, PowerState>> = {
  running: 'on',
  off: 'off',
  shutdown: 'off',
  prelaunch: 'starting',
};

/** The state that a job shows while it runs. A job that is not listed leaves the machine's state as it is. */
const statesOfJobs: Readonly<Partial<Record<JobRecord['kind'], { vendorStatus: string; powerState: PowerState }>>> = {
  create: { vendorStatus: 'creating', powerState: 'starting' },
  start: { vendorStatus: 'starting', powerState: 'starting' },
  power_on: { vendorStatus: 'starting', powerState: 'starting' },
  power_off: { vendorStatus: 'stopping', powerState: 'stopping' },
  reboot: { vendorStatus: 'rebooting', powerState: 'rebooting' },
  delete: { vendorStatus: 'deleting', powerState: 'stopping' },
  rollback: { vendorStatus: 'rolling_back', powerState: 'rebooting' },
};

export interface SeenMachine {
  id: string;
  record: MachineRecord;
  /** QEMU's word, see `readStatus`. */
  status: string;
  running: JobRecord | null;
  isHeld: boolean;
}

export function machineOf({ id, record, status, running, isHeld }: SeenMachine): Machine {
  const powerState = Object.hasOwn(powerStates, status) ? (powerStates[status] ?? 'unknown') : 'unknown';
  return {
    id,
    name: record.name,
    ...((running === null ? undefined : statesOfJobs[running.kind]) ?? { vendorStatus: status, powerState }),
    // It has no network.
    addresses: [],
    isLocked: isHeld || running !== null,
    isRebuildProtected: false,
    isDeleteProtected: false,
    spec: record.spec,
    zone: record.zone,
    image: record.image,
    architecture: 'x86',
    diskGb: record.diskGb,
  };
}

/** Newest first: snapshots that were ordered and not deleted. One is ready if it is within the disk as well. */
export function snapshotsOf(jobs: readonly JobRecord[], inside: ReadonlySet<string>): MachineSnapshot[] {
  const deleted = new Set(
    jobs
      .filter(({ kind, state }) => kind === 'delete_snapshot' && state === 'succeeded')
      .map(({ snapshotId }) => snapshotId),
  );
  return jobs
    .filter((job) => job.kind === 'take_snapshot' && job.state !== 'failed' && !deleted.has(snapshotIdOf(job)))
    .map((job) => ({
      id: snapshotIdOf(job),
      description: job.description,
      status:
        job.state === 'running'
          ? ('creating' as const)
          : inside.has(snapshotIdOf(job))
            ? ('available' as const)
            : ('unavailable' as const),
      createdAt: new Date(job.begunAt),
      // The size of a snapshot is unknown, because it shares its clusters with the disk.
      sizeGb: null,
      architecture: null,
      diskGb: null,
      newerIds: [],
      isDeleteProtected: false,
    }))
    .reverse();
}

export const actionOf = ({ number, kind, state, failure }: JobRecord): ProviderAction => ({
  id: String(number),
  command: kind,
  state,
  progress: null,
  failure:
    state === 'failed'
      ? { reason: failure?.reason ?? 'rejected', internal: `${kind}: ${failure?.internal ?? ''}` }
      : null,
});
