import fs from 'node:fs';
import path from 'node:path';
import { endProcess, waitUntilLeft } from '@drydock/process/end-process';
import { listProcessesIn, type ProcessProof, proveProcess, readCommandLine } from '@drydock/process/process-proof';

/** How long a leftover postmaster has for each of: fast shutdown, immediate shutdown, kill. */
const graceMs = 10_000;

/**
 * Makes a data directory free to start on. A postmaster of an earlier run that still works on it is ended. Its orphaned
 * backends are waited for, because a second server would destroy the data while they run. A postmaster.pid whose pid
 * now belongs to another program is removed, because Postgres would refuse to start.
 */
export async function clearLeftoverPostgres(dataDir: string): Promise<void> {
  const proof = findPostmaster(dataDir);
  if (proof !== null && !(await endProcess(proof, ['SIGINT', 'SIGQUIT', 'SIGKILL'], graceMs))) {
    throw new Error(`Postgres (pid ${proof.pid}) of an earlier run on ${dataDir} cannot be ended`);
  }
  // Backends end by themselves a moment after their postmaster died. They are recognised by their working directory.
  await waitUntilLeft(dataDir, graceMs);
  // On other systems nothing has searched for backends. Postgres itself does, by what the file says. It cannot start
  // only when the file names the pid of an unrelated program.
  if (process.platform === 'linux' || proveProcess(readPidFile(dataDir) ?? 0) !== null) {
    fs.rmSync(path.join(dataDir, 'postmaster.pid'), { force: true });
  }
}

/**
 * The postmaster that works on this data directory, proven by its working directory and its command line. Null when
 * there is none. The number in postmaster.pid is not used: a server in a box writes the pid that it has inside the box.
 */
export function findPostmaster(dataDir: string): ProcessProof | null {
  const pid =
    process.platform === 'linux' ? (listProcessesIn(dataDir).find(isPostmaster) ?? null) : readPidFile(dataDir);
  const proof = pid === null ? null : proveProcess(pid);
  const isOurs =
    pid !== null &&
    isPostmaster(pid) &&
    (process.platform === 'linux' || readCommandLine(pid).includes(`-D ${dataDir} `));
  return isOurs ? proof : null;
}

function readPidFile(dataDir: string): number | null {
  const pidFile = path.join(dataDir, 'postmaster.pid');
  if (!fs.existsSync(pidFile)) return null;
  const pid = Number.parseInt(fs.readFileSync(pidFile, 'utf8'), 10);
  return Number.isInteger(pid) && pid > 0 ? pid : null;
}

/** Its backends show what they do instead of their command line. */
function isPostmaster(pid: number): boolean {
  const commandLine = readCommandLine(pid);
  return path.basename(commandLine.split(' ')[0] ?? '') === 'postgres' && commandLine.includes(' -D ');
}
