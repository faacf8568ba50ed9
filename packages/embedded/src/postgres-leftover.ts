import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endProcess } from './end-process';
import { isSameProcess, listProcessesIn, proveProcess, readCommandLine } from './process-proof';

/** How long a leftover postmaster gets for each of: fast shutdown, immediate shutdown, kill. */
const graceMs = 10_000;

/**
 * Makes a data directory free to start on. A postmaster of an earlier run that still works on it is ended, after its command line has
 * shown that it is Postgres on exactly this directory; its orphaned backends are waited for, since a second server beside them would
 * destroy the data. A postmaster.pid whose pid belongs to another program by now is removed: Postgres would refuse to start.
 */
export async function clearLeftoverPostgres(dataDir: string): Promise<void> {
  const pidFile = path.join(dataDir, 'postmaster.pid');
  const pid = readPidFile(pidFile);
  const proof = pid === null ? null : proveProcess(pid);
  const isOurs = proof !== null && isPostmasterOf(proof.pid, dataDir);
  if (isOurs && !(await endProcess(proof, ['SIGINT', 'SIGQUIT', 'SIGKILL'], graceMs))) {
    throw new Error(`Postgres (pid ${proof.pid}) of an earlier run on ${dataDir} cannot be ended`);
  }
  await waitForOrphans(dataDir);
  if (proof !== null && !isOurs && isSameProcess(proof)) fs.rmSync(pidFile, { force: true });
}

function readPidFile(pidFile: string): number | null {
  if (!fs.existsSync(pidFile)) return null;
  const pid = Number.parseInt(fs.readFileSync(pidFile, 'utf8'), 10);
  return Number.isInteger(pid) && pid > 0 ? pid : null;
}

function isPostmasterOf(pid: number, dataDir: string): boolean {
  const words = readCommandLine(pid).split(' ');
  return path.basename(words[0] ?? '') === 'postgres' && readCommandLine(pid).includes(`-D ${dataDir} `);
}

/** Backends end by themselves within a moment of their postmaster's death; their working directory tells them. */
async function waitForOrphans(dataDir: string): Promise<void> {
  const until = performance.now() + graceMs;
  for (;;) {
    const left = listProcessesIn(dataDir).filter((pid) => pid !== process.pid);
    if (left.length === 0) return;
    if (performance.now() > until) throw new Error(`Processes ${left.join(', ')} still work in ${dataDir}`);
    await sleep(50);
  }
}
