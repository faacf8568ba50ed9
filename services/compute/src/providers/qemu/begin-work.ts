import { execFile, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ComputeError } from '../compute-provider';
import { claimJob, type JobRecord, type MachineFolders, readJobs } from './machine-folders';
import { readStatus } from './qmp';

const run = promisify(execFile);
/** The program is loaded from the build output even under jest, which runs this file from its source. */
const program = path.resolve(__dirname, '../../../dist/providers/qemu/run-job.js');

/**
 * Starts a process that carries out the machine's job and outlives the caller's process. The function may be called at
 * any time. `flock` holds the machine's lock while the job's process lives, even if that process is frozen. A second
 * process ends at once. `environment` replaces this process's environment.
 */
export function beginWork(machineFolder: string, environment?: Record<string, string>): void {
  let log: number;
  try {
    log = openSync(path.join(machineFolder, 'work.log'), 'a', 0o600);
  } catch {
    // The machine was deleted meanwhile, so there is no job.
    return;
  }
  const args = ['--nonblock', '--no-fork', path.join(machineFolder, 'lock'), process.execPath, program, machineFolder];
  const env = environment === undefined ? {} : { env: environment };
  const child = spawn('flock', args, { detached: true, stdio: ['ignore', log, log], ...env });
  // A failed start is ignored, because the next read of the job starts the process again.
  child.once('error', () => undefined);
  child.unref();
  closeSync(log);
}

let tools: Promise<void> | null = null;

/**
 * Checks that the tools of QEMU are installed. It must be called before any work is accepted. @throws ComputeError
 * `unavailable` if one is missing
 */
export function assertTools(): Promise<void> {
  tools ??= Promise.all(['qemu-system-x86_64', 'qemu-img', 'flock'].map((tool) => run(tool, ['--version']))).then(
    () => undefined,
    (error: unknown) => {
      tools = null;
      throw new ComputeError('unavailable', 'qemu-system-x86, qemu-utils and util-linux have to be installed here', {
        cause: error,
      });
    },
  );
  return tools;
}

/** The reference of jobs that revive a machine. No workflow asked for them. */
const reference = 'revive';
/** After this many revivals within a day, the machine is left to staff. */
const revivalsMax = 5;
const dayMs = 24 * 3_600_000;

/**
 * Starts machines that should run and have no process. Machines lose their process when the host restarts. A machine
 * that its owner powered off from inside still has its process, so it is not started. A machine that does not start is
 * left as it is.
 */
export async function reviveMachines(
  folders: MachineFolders,
  beginWork: (machineFolder: string) => void,
): Promise<void> {
  // A damaged folder of one machine must not prevent the start of other machines. A request for the damaged machine
  // gets the error.
  for (const machineId of await folders.list())
    if (await revive(folders, machineId).catch(() => false)) beginWork(folders.of(machineId));
}

/** Claims the start of the machine if it should run. Resolves with true if this call has claimed it. */
async function revive(folders: MachineFolders, machineId: string): Promise<boolean> {
  const machineFolder = folders.of(machineId);
  if (
    (await readStatus(machineFolder)) !== 'off' ||
    (await folders.isHeld(machineId)) ||
    (await folders.read(machineId)) === null
  )
    return false;
  const jobs = await readJobs(machineFolder);
  const last = jobs.at(-1);
  if (last === undefined || last.state === 'running' || !shouldRun(jobs)) return false;
  return await claimJob(machineFolder, {
    ...{ number: last.number + 1, kind: 'start', reference, state: 'running', isApplied: false, startsAfter: false },
    ...{
      isForced: false,
      guestSeconds: 0,
      snapshotId: null,
      description: '',
      failure: null,
      begunAt: new Date().toISOString(),
    },
  });
}

/**
 * Whether the job decides if the machine should run. A failed power_off is not decisive, because it has changed
 * nothing.
 */
const isDecisive = ({ kind, state }: JobRecord): boolean =>
  kind === 'power_off' ? state === 'succeeded' : ['start', 'power_on', 'reboot', 'rollback'].includes(kind);

/**
 * Whether a machine without a process should run. The machine should run if its last decisive job has started it and it
 * was not revived too often.
 */
export function shouldRun(jobs: readonly JobRecord[]): boolean {
  const isRecent = ({ begunAt }: JobRecord): boolean => Date.now() - Date.parse(begunAt) < dayMs;
  const lately = jobs.slice(-revivalsMax);
  const isGivenUp =
    lately.length === revivalsMax && lately.every((job) => job.reference === reference && isRecent(job));
  const decisive = jobs.findLast(isDecisive);
  if (isGivenUp || decisive === undefined || decisive.kind === 'power_off') return false;
  return decisive.kind === 'start' || decisive.kind === 'power_on'
    ? decisive.state === 'succeeded'
    : decisive.startsAfter;
}
