import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Tells a process from a later one with the same pid. `startedTicks` is the kernel's start time: clock ticks since boot
 * on Linux, the text of `ps -o lstart` elsewhere.
 */
export interface ProcessProof {
  pid: number;
  startedTicks: string;
}

/** The start time of a live process; null when there is none with this pid (or only its zombie). */
export function readStartedTicks(pid: number): string | null {
  if (process.platform !== 'linux') return readColumn(pid, 'lstart');
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses, which may contain spaces and parentheses. So the fields are
    // counted from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/** The whole command line of a live process, its arguments separated by spaces; empty when it cannot be read. */
export function commandLineOf(pid: number): string {
  if (process.platform !== 'linux') return readColumn(pid, 'command') ?? '';
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/** Identifies a running process, to recognise it later; null if it has gone already. */
export function proveProcess(pid: number): ProcessProof | null {
  const startedTicks = readStartedTicks(pid);
  return startedTicks === null ? null : { pid, startedTicks };
}

/** Whether this very process is still running: same pid, same start, and every given text in its command line. */
export function isSameProcess(proof: ProcessProof, commandLineContains: readonly string[] = []): boolean {
  if (readStartedTicks(proof.pid) !== proof.startedTicks) return false;
  const commandLine = commandLineOf(proof.pid);
  return commandLineContains.every((text) => commandLine.includes(text));
}

/**
 * Lists the running processes whose working directory is this folder. A process in a box counts too, though it may see
 * the folder under another path. The list is empty on systems other than Linux.
 */
export function listProcessesIn(folder: string): number[] {
  if (process.platform !== 'linux') return [];
  const here = identityOf(folder);
  const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return here === null ? [] : pids.filter((pid) => identityOf(`/proc/${pid}/cwd`) === here).map(Number);
}

/** The identity of a folder, whatever its path; null if it does not exist or may not be read. */
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
 * Ends exactly this process, and not another one that got its pid since: sends each signal in turn, and waits `graceMs`
 * after each. Resolves with true once it has gone, and with false if it outlived them all (a process in an
 * uninterruptible wait).
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

/** Sends a signal; a process that has just gone is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Waits until no other process works in the folder: a second server beside leftover processes would destroy the data.
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
