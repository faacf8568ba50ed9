import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

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
