import { setTimeout as sleep } from 'node:timers/promises';
import type { ChildExit, ProcessProof } from '@drydock/process';
import type { ProcessTable } from './data-folder';

export interface Running {
  port: number;
  proof: ProcessProof;
  /**
   * A text in the process's command line, by which the next start recognises the process if it was left running. The
   * text is empty for a database server, because the next start of the server ends a leftover server itself.
   */
  program: string;
  exited: Promise<ChildExit>;
  stop(): Promise<void>;
}

/**
 * A process that must keep running. For a program of Drydock `start` resolves when the process is spawned, and for a
 * database server when the server answers.
 */
export interface ManagedProcess {
  name: string;
  start(): Promise<Running>;
}

export interface Supervisor {
  /**
   * Starts the process, and starts it again whenever it dies. Resolves after the first start. @throws if the first
   * start fails
   */
  keepRunning(managed: ManagedProcess): Promise<Running>;
  /** Returns how often the process has died since its first start. */
  deathsOf(name: string): number;
  /** From now on no process is started. A process whose start is in progress is stopped after its start. */
  close(): void;
  /** Stops these processes, all at once. Resolves when they have ended. */
  stop(names: readonly string[]): Promise<void>;
}

const firstDelayMs = 250;
const delayMsMax = 10_000;
/** A process that ran for this long was healthy, so its death counts as a first death. */
const steadyMs = 30_000;

interface Kept {
  running: Running | null;
  deaths: number;
  quickDeaths: number;
  stopping: AbortController;
  ended: Promise<void>;
}

/** Waits for `ms`, or until the signal aborts. */
type Pause = (ms: number, signal: AbortSignal) => Promise<void>;
const pauseByClock: Pause = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined);

/**
 * Keeps processes running and records them in `table`. A process is started again at once after its first death, and
 * with growing pauses when it dies again and again.
 */
export function createSupervisor(
  table: ProcessTable,
  say: (line: string) => void,
  pause: Pause = pauseByClock,
): Supervisor {
  const processes = new Map<string, Kept>();
  let isClosed = false;

  /**
   * Writes a change into the table. If this fails, for example because the disk is full, the table stays wrong until
   * the next change. An error here must not keep a process from being started again.
   */
  function note(change: () => void): void {
    try {
      change();
    } catch (error) {
      say(`The table of processes cannot be written: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async function startOnce(managed: ManagedProcess, kept: Kept): Promise<Running> {
    const running = await managed.start();
    kept.running = running;
    if (kept.stopping.signal.aborted) void running.stop();
    note(() => table.up(managed.name, { ...running.proof, program: running.program }, running.port));
    return running;
  }

  async function watch(managed: ManagedProcess, kept: Kept, first: Running): Promise<void> {
    let running: Running | null = first;
    for (;;) {
      const sinceMs = performance.now();
      if (running !== null) await noteDeath(managed.name, kept, running);
      if (kept.stopping.signal.aborted) return;
      kept.quickDeaths = performance.now() - sinceMs > steadyMs ? 1 : kept.quickDeaths + 1;
      if (kept.quickDeaths > 1) await pause(pauseMs(kept.quickDeaths), kept.stopping.signal);
      if (kept.stopping.signal.aborted) return;
      running = await startOnce(managed, kept).catch((error: unknown) => {
        say(`${managed.name} does not start: ${error instanceof Error ? error.message : String(error)}`);
        return null;
      });
    }
  }

  async function noteDeath(name: string, kept: Kept, running: Running): Promise<void> {
    const { code, signal } = await running.exited;
    kept.running = null;
    kept.deaths += 1;
    note(() => table.down(name));
    if (!kept.stopping.signal.aborted)
      say(`${name} (pid ${running.proof.pid}) ended with ${signal ?? `code ${code}`}; starting it again`);
  }

  async function stopOne(name: string): Promise<void> {
    const kept = processes.get(name);
    if (kept === undefined) return;
    kept.stopping.abort();
    await kept.running?.stop();
    await kept.ended;
    note(() => table.down(name));
  }

  return {
    keepRunning: async (managed) => {
      if (isClosed) throw new Error('Drydock is stopping');
      const kept: Kept = {
        running: null,
        deaths: 0,
        quickDeaths: 0,
        stopping: new AbortController(),
        ended: Promise.resolve(),
      };
      processes.set(managed.name, kept);
      const starting = startOnce(managed, kept);
      kept.ended = starting.then((running) => watch(managed, kept, running)).catch(() => undefined);
      return starting;
    },
    close: () => {
      isClosed = true;
      for (const kept of processes.values()) kept.stopping.abort();
    },
    deathsOf: (name) => processes.get(name)?.deaths ?? 0,
    stop: async (names) => {
      await Promise.all(names.map(stopOne));
    },
  };
}

const pauseMs = (quickDeaths: number): number => Math.min(firstDelayMs * 2 ** (quickDeaths - 2), delayMsMax);
