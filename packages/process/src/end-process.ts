import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The identity of a process. A later process with the same pid has another identity. `startedTicks` is the kernel's
 * start time: ticks since boot on Linux, the text of `ps -o lstart` elsewhere.
 */
export interface ProcessProof {
  pid: number;
  startedTicks: string;
}

/** Returns the start time of a live process, or null if no process has this pid. A zombie counts as ended. */
export function readStartedTicks(pid: number): string | null {
  if (process.platform !== 'linux') return readColumn(pid, 'lstart');
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses, which may itself contain spaces and parentheses. So the fields
    // are counted after the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/**
 * Returns the command line of a live process, or '' if it cannot be read. The arguments are separated by spaces, so an
 * argument with a space is not recognisable.
 */
export function commandLineOf(pid: number): string {
  if (process.platform !== 'linux') return readColumn(pid, 'command') ?? '';
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/** Returns the identity of a running process, or null if it has ended. */
export function proveProcess(pid: number): ProcessProof | null {
  const startedTicks = readStartedTicks(pid);
  return startedTicks === null ? null : { pid, startedTicks };
}

/** Tells whether the identified process still runs and has all given texts in its command line. */
export function isSameProcess(proof: ProcessProof, commandLineContains: readonly string[] = []): boolean {
  if (readStartedTicks(proof.pid) !== proof.startedTicks) return false;
  const commandLine = commandLineOf(proof.pid);
  return commandLineContains.every((text) => commandLine.includes(text));
}

/**
 * Lists the processes whose working directory is this folder. Processes in a box are included, although they may see
 * another path. The list is empty on systems other than Linux.
 */
export function listProcessesIn(folder: string): number[] {
  if (process.platform !== 'linux') return [];
  const here = identityOf(folder);
  const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return here === null ? [] : pids.filter((pid) => identityOf(`/proc/${pid}/cwd`) === here).map(Number);
}

function identityOf(folder: string): string | null {
  try {
    const { dev, ino } = fs.statSync(folder, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}

function readColumn(pid: number, column: string): string | null {
  try {
    return execFileSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
  } catch {
    return null;
  }
}

/**
 * Ends the identified process, but no later process with its pid. Sends the signals one after the other, and waits up
 * to `graceMs` after each. Resolves with false if the process still runs, for example in an uninterruptible wait.
 */
export async function endProcess(
  proof: ProcessProof,
  signals: readonly NodeJS.Signals[],
  graceMs: number,
): Promise<boolean> {
  for (const signal of signals) {
    if (!isSameProcess(proof)) return true;
    sendSignal(proof.pid, signal);
    if (await hasGone(proof, graceMs)) return true;
  }
  return !isSameProcess(proof);
}

async function hasGone(proof: ProcessProof, withinMs: number): Promise<boolean> {
  const until = performance.now() + withinMs;
  while (performance.now() < until) {
    if (!isSameProcess(proof)) return true;
    await sleep(20);
  }
  return !isSameProcess(proof);
}

/** Sends a signal. Does nothing if the process has already ended. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Waits until this folder is the working directory of no other process, because a second server on a data folder would
 * destroy the data. @throws if that takes longer than `withinMs`
 */
export async function waitUntilLeft(folder: string, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  for (;;) {
    const left = listProcessesIn(folder).filter((pid) => pid !== process.pid);
    if (left.length === 0) return;
    if (performance.now() > until) throw new Error(`Processes ${left.join(', ')} still work in ${folder}`);
    await sleep(50);
  }
}
