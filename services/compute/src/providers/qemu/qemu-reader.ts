import type { ProviderAction } from '../compute-change.types';
import { ComputeError } from '../compute-error';
import type { Machine, MachineSnapshot } from '../compute-machine.types';
import type { ComputeReader } from '../compute-provider';
import type { MachineFolders } from './machine-folders';
import { listInside } from './qemu-disk';
import { readJob, readJobs, readLastJob } from './qemu-jobs';
import type { JobRecord } from './qemu-records';
import { actionOf, machineOf, snapshotsOf } from './qemu-shapes';
import { readStatus } from './qemu-status';

/** Called whenever somebody sees a running job: a reader that may work makes sure that it is carried out. */
type OnRunning = (machineFolder: string) => void;

/** Reads files and asks processes; changes nothing. */
export function qemuReader(folders: MachineFolders, onRunning: OnRunning = () => undefined): ComputeReader {
  const readRunning = async (machineId: string): Promise<JobRecord | null> => {
    const job = await readLastJob(folders.of(machineId));
    if (job?.state !== 'running') return null;
    onRunning(folders.of(machineId));
    return job;
  };
  const readMachine = async (machineId: string): Promise<Machine | null> => {
    // Read before and after the process: the state of a machine under work is not its final one.
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
    readMachine: (machineId) => looked(readMachine(machineId)),
    // A machine's id is its name.
    findMachine: (name) => looked(readMachine(name)),
    listMachines: () =>
      looked(
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
    listSnapshots: (machineId) => looked(listSnapshots(machineId)),
    readSnapshot: async (machineId, snapshotId) =>
      (await looked(listSnapshots(machineId))).find(({ id }) => id === snapshotId) ?? null,
    // Jobs carry the workflow's id.
    prepareEarly: async () => null,
    readRunningAction: (machineId) =>
      looked(readRunning(machineId).then((job) => (job === null ? null : actionOf(job)))),
    readAction: (machineId, actionId) => looked(readAction(folders, machineId, actionId, onRunning)),
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

/** A failed look says nothing about the machine. */
export function looked<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (error instanceof ComputeError) throw error;
    throw new ComputeError('unavailable', error instanceof Error ? error.message : String(error), { cause: error });
  });
}
