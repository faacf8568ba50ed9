import type { MachineFolders } from './machine-folders';
import { claimJob, readJobs } from './qemu-jobs';
import type { JobRecord } from './qemu-records';
import { readStatus } from './qemu-status';

/** Stands in such a job where a workflow's id would. */
const reference = 'revive';
/** So often in a row; then it is somebody's to look at. */
const revivalsMax = 5;

/**
 * Machines that should run and have no process were lost, as all are when the host starts again: they are started.
 * One that its owner powered off from inside has its process still; one that does not start is left.
 */
export async function reviveMachines(folders: MachineFolders, beginWork: (machineFolder: string) => void): Promise<void> {
  for (const machineId of await folders.list()) {
    const machineFolder = folders.of(machineId);
    if ((await readStatus(machineFolder)) !== 'off' || (await folders.isHeld(machineId)) || (await folders.read(machineId)) === null)
      continue;
    const jobs = await readJobs(machineFolder);
    const last = jobs.at(-1);
    if (last === undefined || last.state === 'running' || !shouldRun(jobs)) continue;
    const job: JobRecord = {
      ...{ number: last.number + 1, kind: 'start', reference, state: 'running', isApplied: false, startsAfter: false },
      ...{ snapshotId: null, description: '', failure: null, begunAt: new Date().toISOString() },
    };
    if (await claimJob(machineFolder, job)) beginWork(machineFolder);
  }
}

function shouldRun(jobs: readonly JobRecord[]): boolean {
  const isGivenUp = jobs.length >= revivalsMax && jobs.slice(-revivalsMax).every((job) => job.reference === reference);
  const decisive = jobs.findLast(({ kind }) => kind === 'start' || kind === 'rollback');
  if (isGivenUp || decisive === undefined) return false;
  return decisive.kind === 'start' ? decisive.state === 'succeeded' : decisive.startsAfter;
}
