import type { Machine, MachineSnapshot, PowerState, ProviderAction } from '../compute.types';
import { ComputeError, type ComputeReader } from '../compute-provider';
import {
  type JobRecord,
  type MachineFolders,
  type MachineRecord,
  readJob,
  readJobs,
  readLastJob,
  snapshotIdOf,
} from './machine-folders';
import { listInside } from './qemu-process';
import { readStatus } from './qmp';

/** Power states by QEMU's run state. A run state that is not listed is unknown. */
const powerStates: Readonly<Record<string, PowerState>> = {
  running: 'on',
  off: 'off',
  shutdown: 'off',
  prelaunch: 'starting',
};

/** The state of a machine while a job of this kind runs. Other jobs leave the state as it is. */
const statesOfJobs: Readonly<Partial<Record<JobRecord['kind'], { vendorStatus: string; powerState: PowerState }>>> = {
  create: { vendorStatus: 'creating', powerState: 'starting' },
  start: { vendorStatus: 'starting', powerState: 'starting' },
  power_on: { vendorStatus: 'starting', powerState: 'starting' },
  power_off: { vendorStatus: 'stopping', powerState: 'stopping' },
  reboot: { vendorStatus: 'rebooting', powerState: 'rebooting' },
  delete: { vendorStatus: 'deleting', powerState: 'stopping' },
  rollback: { vendorStatus: 'rolling_back', powerState: 'rebooting' },
};

interface SeenMachine {
  id: string;
  record: MachineRecord;
  /** QEMU's run state, as `readStatus` returns it. */
  status: string;
  running: JobRecord | null;
  isHeld: boolean;
}

function machineOf({ id, record, status, running, isHeld }: SeenMachine): Machine {
  const powerState = Object.hasOwn(powerStates, status) ? (powerStates[status] ?? 'unknown') : 'unknown';
  return {
    id,
    name: record.name,
    ...((running === null ? undefined : statesOfJobs[running.kind]) ?? { vendorStatus: status, powerState }),
    // The machine has no network.
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

/**
 * Lists the snapshots that were begun, did not fail and were not deleted, newest first. A snapshot is available once
 * its job has succeeded and the disk contains it.
 */
function snapshotsOf(jobs: readonly JobRecord[], inside: ReadonlySet<string>): MachineSnapshot[] {
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

const actionOf = ({ number, kind, state, failure }: JobRecord): ProviderAction => ({
  id: String(number),
  command: kind,
  state,
  progress: null,
  failure:
    state === 'failed'
      ? { reason: failure?.reason ?? 'rejected', internal: `${kind}: ${failure?.internal ?? ''}` }
      : null,
});

/**
 * Called when a read of a machine or of an action finds a running job. The callback of a worker starts the process that
 * carries the job out, because an earlier process may have died.
 */
type OnRunning = (machineFolder: string) => void;

/** The reading part of the provider. It reads files, asks QEMU's processes, and changes nothing. */
export function qemuReader(folders: MachineFolders, onRunning: OnRunning = () => undefined): ComputeReader {
  const readRunning = async (machineId: string): Promise<JobRecord | null> => {
    const job = await readLastJob(folders.of(machineId));
    if (job?.state !== 'running') return null;
    onRunning(folders.of(machineId));
    return job;
  };
  const readMachine = async (machineId: string): Promise<Machine | null> => {
    // The jobs are read before and after QEMU's state, because a job that runs at either time may change that state.
    const before = await readRunning(machineId);
    const record = await folders.read(machineId);
    if (record === null) return null;
    const [status, isHeld] = await Promise.all([readStatus(folders.of(machineId)), folders.isHeld(machineId)]);
    return machineOf({ id: machineId, record, status, isHeld, running: before ?? (await readRunning(machineId)) });
  };
  const listSnapshots = async (machineId: string): Promise<MachineSnapshot[]> => {
    const jobs = await readJobs(folders.of(machineId));
    if (!jobs.some(({ kind }) => kind === 'take_snapshot') || (await folders.read(machineId)) === null) return [];
    return snapshotsOf(jobs, await listInside(folders.of(machineId)));
  };
  return {
    provider: 'qemu',
    capabilities: ['compute:snapshots'],
    readMachine: (machineId) => orUnavailable(readMachine(machineId)),
    // The id of a machine is its name.
    findMachine: (name) => orUnavailable(readMachine(name)),
    listMachines: () =>
      orUnavailable(
        folders.list().then(async (ids) => {
          const machines: Machine[] = [];
          for (const id of ids) {
            // A machine that cannot be read is left out of the list. A request for that machine alone gets the error.
            const machine = await readMachine(id).catch(() => null);
            if (machine !== null) machines.push(machine);
          }
          return machines;
        }),
      ),
    listSnapshots: (machineId) => orUnavailable(listSnapshots(machineId)),
    readSnapshot: async (machineId, snapshotId) =>
      (await orUnavailable(listSnapshots(machineId))).find(({ id }) => id === snapshotId) ?? null,
    // Nothing has to be stored before a change is sent: the machine's job has the workflow's id, by which `find`
    // recognises the change.
    prepareEarly: async () => null,
    readRunningAction: (machineId) =>
      orUnavailable(readRunning(machineId).then((job) => (job === null ? null : actionOf(job)))),
    readAction: (machineId, actionId) => orUnavailable(readAction(folders, machineId, actionId, onRunning)),
  };
}

async function readAction(
  folders: MachineFolders,
  machineId: string,
  actionId: string,
  onRunning: OnRunning,
): Promise<ProviderAction> {
  const machineFolder = await folders.withJobs(machineId);
  const job = /^[1-9]\d{0,7}$/.test(actionId) ? await readJob(machineFolder, Number(actionId)) : null;
  if (job === null) throw new ComputeError('action_not_found', `machine ${machineId} has no job ${actionId}`);
  if (job.state === 'running') onRunning(machineFolder);
  return actionOf(job);
}

/** Turns every error that is no ComputeError into `unavailable`. Errors of a write must already be `ambiguous`. */
export function orUnavailable<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (error instanceof ComputeError) throw error;
    throw new ComputeError('unavailable', error instanceof Error ? error.message : String(error), { cause: error });
  });
}
