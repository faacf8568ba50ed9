import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';

/** A process with its CPU time, including the CPU time of its ended children. */
export interface ProcessUse {
  pid: number;
  parent: number;
  startedTicks: string;
  cpuMs: number;
}

/** Linux reports CPU time in hundredths of a second. */
const tickMs = 10;

/** The pid of kthreadd, the parent of all other kernel threads. */
const kernelPid = 2;

/**
 * Returns every visible process by pid, and none on systems other than Linux. The call takes about 30 µs for each
 * process, so {@link PriorityThread} keeps it off the event loop. Pids in `skipped` are not read, and pids of kernel
 * threads are added to `skipped`.
 */
export function readProcessUse(skipped: Set<number> = new Set()): Map<number, ProcessUse> {
  if (process.platform !== 'linux') return new Map();
  const pids = fs.readdirSync('/proc').map(Number).filter(Number.isInteger);
  const uses = pids.filter((pid) => !skipped.has(pid)).flatMap((pid) => readOne(pid) ?? []);
  // In a container the kernel's threads are not visible, and pid 2 is an ordinary process.
  const isKernel = uses.some(({ pid, parent }) => pid === kernelPid && parent === 0) || skipped.has(kernelPid);
  if (isKernel) for (const { pid, parent } of uses) if (pid === kernelPid || parent === kernelPid) skipped.add(pid);
  return new Map(uses.map((use) => [use.pid, use]));
}

function readOne(pid: number): ProcessUse | null {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // The four fields are the CPU time of the process and its ended children, in user mode and in the kernel.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { pid, parent: Number(fields[1]), startedTicks: fields[19] ?? '', cpuMs: ticks * tickMs };
  } catch {
    return null; // the process has ended
  }
}

/**
 * Sets a nice value, from 0 to 19 (the lowest priority), for the threads of a process and for its session. Never
 * throws. Most distributions enable `sched_autogroup_enabled`: Linux then divides CPU time among sessions first, and a
 * thread's value counts only within its session. In a container only the values of threads count. Without CAP_SYS_NICE
 * threads are left unchanged, because an ordinary user cannot lower their value again.
 */
export function setNice(pid: number, nice: number): void {
  const { thread, session } = readNice(pid);
  if (thread !== nice && isThreadNiceReversible())
    for (const one of threadsOf(pid)) ignoreRefusal(() => os.setPriority(one, nice));
  if (session !== null && session !== nice)
    ignoreRefusal(() => fs.writeFileSync(`/proc/${pid}/autogroup`, String(nice)));
}

const sysNice = 23n;
let reversible: boolean | undefined;

/** Tells whether this process has CAP_SYS_NICE. */
function isThreadNiceReversible(): boolean {
  reversible ??= ((BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(readStatus())?.[1] ?? '0'}`) >> sysNice) & 1n) === 1n;
  return reversible;
}

const readStatus = (): string => ignoreRefusal(() => fs.readFileSync('/proc/self/status', 'latin1')) ?? '';

/** Returns the nice values of a process's first thread and of its session. A missing value is null. */
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

/** Returns null if the process has ended or belongs to another account, or the kernel lacks the file. */
function ignoreRefusal<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

/** A message to the thread. `nices` has pids with the nice values to set. `isAsked` requests all processes. */
export interface PriorityMessage {
  nices: readonly (readonly [number, number])[];
  isAsked: boolean;
}

/** The path leads to the build output, because jest cannot load a worker from its source. */
const workerFile = path.resolve(__dirname, '../dist/priority-worker.js');

/** Reads CPU times and sets priorities in a thread, because hundreds of reads of `/proc` would block the event loop. */
export class PriorityThread {
  private worker: Worker | null = null;
  private asked: PendingRead | null = null;

  /**
   * Reads every visible process. Only one call may run at a time. Rejects if the thread ends; the next call starts
   * another thread.
   */
  read(): Promise<Map<number, ProcessUse>> {
    return new Promise((resolve, reject) => {
      this.asked = { resolve, reject };
      this.post({ nices: [], isAsked: true });
    });
  }

  /** Sets nice values soon. Errors are ignored. */
  set(nices: PriorityMessage['nices']): void {
    if (nices.length > 0) this.post({ nices, isAsked: false });
  }

  async stop(): Promise<void> {
    await this.worker?.terminate();
  }

  private post(message: PriorityMessage): void {
    this.worker ??= this.start();
    this.worker.postMessage(message);
  }

  private start(): Worker {
    const worker = new Worker(workerFile, { execArgv: [] });
    worker.unref();
    worker.on('message', (uses: ProcessUse[]) => this.asked?.resolve(new Map(uses.map((use) => [use.pid, use]))));
    worker.once('error', (error) => this.asked?.reject(error));
    worker.once('exit', () => {
      this.worker = null;
      this.asked?.reject(new Error('the thread that reads processes has ended'));
    });
    return worker;
  }
}

interface PendingRead {
  resolve: (uses: Map<number, ProcessUse>) => void;
  reject: (error: Error) => void;
}
