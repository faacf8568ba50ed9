import fs from 'node:fs';
import os from 'node:os';
import { setImmediate as othersFirst } from 'node:timers/promises';

/** A process, and the CPU time that it and the children which it has waited for have used. */
export interface ProcessUse {
  pid: number;
  parent: number;
  startedTicks: string;
  cpuMs: number;
}

/** Linux counts in hundredths of a second here, on every machine. */
const tickMs = 10;
const processesAtOnce = 50;

/** Every process that we see, by its pid. Linux only; elsewhere none. Our other work goes on in between. */
export async function readProcessUse(): Promise<Map<number, ProcessUse>> {
  const found = new Map<number, ProcessUse>();
  if (process.platform !== 'linux') return found;
  const pids = fs.readdirSync('/proc').map(Number).filter(Number.isInteger);
  for (const [at, pid] of pids.entries()) {
    if (at % processesAtOnce === processesAtOnce - 1) await othersFirst();
    const use = readOne(pid);
    if (use !== null) found.set(pid, use);
  }
  return found;
}

function readOne(pid: number): ProcessUse | null {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Its own time and that of children that have ended, each outside and inside of the kernel.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { pid, parent: Number(fields[1]), startedTicks: fields[19] ?? '', cpuMs: ticks * tickMs };
  } catch {
    return null; // it has gone
  }
}

/**
 * Gives a process this nice value, from 0 (as we are) to 19 (last). Never throws.
 *
 * Linux weighs whole sessions against each other where it groups them (`sched_autogroup_enabled`, the default of most distributions), and there a thread's own value means nothing
 * outside of its session. In a control group of its own, as in a container, only the threads' values count. So both are set. An ordinary user can take a session's value back and not
 * a thread's, so that only CAP_SYS_NICE sets those: nobody stays at the end for ever.
 */
export function setNice(pid: number, nice: number): void {
  const { thread, session } = readNice(pid);
  if (thread !== nice && isThreadNiceReversible()) for (const one of threadsOf(pid)) ignoreRefusal(() => os.setPriority(one, nice));
  if (session !== null && session !== nice) ignoreRefusal(() => fs.writeFileSync(`/proc/${pid}/autogroup`, String(nice)));
}

const sysNice = 23n;
let reversible: boolean | undefined;

/** Whether we have CAP_SYS_NICE. */
function isThreadNiceReversible(): boolean {
  reversible ??= ((BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(readStatus())?.[1] ?? '0'}`) >> sysNice) & 1n) === 1n;
  return reversible;
}

const readStatus = (): string => ignoreRefusal(() => fs.readFileSync('/proc/self/status', 'latin1')) ?? '';

/** The values of a process' first thread and of its session; null where there is none. */
export function readNice(pid: number): { thread: number | null; session: number | null } {
  const [thread, session] = [
    ignoreRefusal(() => os.getPriority(pid)),
    ignoreRefusal(() => fs.readFileSync(`/proc/${pid}/autogroup`, 'latin1')),
  ];
  const value = /nice (-?\d+)/.exec(session ?? '')?.[1];
  return { thread, session: value === undefined ? null : Number(value) };
}

function threadsOf(pid: number): number[] {
  try {
    return fs.readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

/** Null when it has gone, when it is not ours, and where this kernel has no such thing. */
function ignoreRefusal<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}
