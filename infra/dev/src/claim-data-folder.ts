import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makePassableFolder } from '@drydock/postgres/server/unprivileged';
import { endProcess } from '@drydock/process/end-process';
import { isSameProcess, proveProcess } from '@drydock/process/process-proof';
import { z } from 'zod';
import { readNotedProcesses } from './process-table';
import { writeJsonAtomically } from './write-file-atomically';

const supervisorSchema = z.object({ pid: z.int().positive(), startedTicks: z.string() });

/** Orphans were already told to end when their supervisor died; what still runs hangs. */
const graceMs = 5_000;

/**
 * How long a supervisor waits before it looks again. Two that start at the same moment both find nobody and both write; who wrote last
 * stays.
 */
const sameMomentMs = 250;

/**
 * Makes the data folder ours: refuses while another supervisor works on it, then ends what an earlier one left behind. A process is
 * ended only when pid, start time and program all match what was noted about it; whatever else has its pid by now is left alone.
 * Postgres and Redis end their own leftovers (packages/postgres).
 */
export async function claimDataFolder(dataDir: string, say: (line: string) => void): Promise<void> {
  makePassableFolder(dataDir);
  const file = path.join(dataDir, 'supervisor.json');
  refuseOther(dataDir, file);
  const proof = proveProcess(process.pid);
  if (proof !== null) writeJsonAtomically(file, proof);
  await sleep(sameMomentMs);
  refuseOther(dataDir, file);
  await Promise.all(Object.entries(readNotedProcesses(dataDir)).map(([name, noted]) => endLeftover(name, noted, say)));
}

function refuseOther(dataDir: string, file: string): void {
  if (!fs.existsSync(file)) return;
  const other = supervisorSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8')));
  if (!isSameProcess(other) || other.pid === process.pid) return;
  throw new Error(`Drydock already runs on ${dataDir} (pid ${other.pid}). Stop it first, or set DRYDOCK_DATA_DIR and DRYDOCK_PORT.`);
}

async function endLeftover(name: string, noted: { pid: number; startedTicks: string; program: string }, say: (line: string) => void) {
  if (noted.program === '' || !isSameProcess(noted, [noted.program])) return;
  say(`Ending ${name} (pid ${noted.pid}) of an earlier run`);
  if (!(await endProcess(noted, ['SIGTERM', 'SIGKILL'], graceMs)))
    throw new Error(`${name} (pid ${noted.pid}) of an earlier run cannot be ended`);
}
