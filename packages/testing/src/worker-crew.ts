import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';

/** Worker processes. Each one that ends is replaced by a new one. */
export interface WorkerCrew {
  /** Returns the pids of workers that SIGSTOP has stopped. */
  frozen(): number[];
  thaw(): void;
  /** Ends all workers without a restart. */
  close(): Promise<void>;
}

/** Keeps `count` workers running. A test that freezes a worker needs a second worker to take over the workflow. */
export function keepWorkers(count: number, spawnWorker: () => ChildProcess): WorkerCrew {
  const alive = new Set<ChildProcess>();
  let closing = false;
  const hire = (): void => {
    const child = spawnWorker();
    alive.add(child);
    child.once('exit', () => {
      alive.delete(child);
      if (!closing) hire();
    });
  };
  for (let number = 0; number < count; number += 1) hire();
  const frozen = (): number[] =>
    [...alive].flatMap((child) => (child.pid !== undefined && isStopped(child.pid) ? [child.pid] : []));
  return {
    frozen,
    thaw: () => {
      for (const pid of frozen()) process.kill(pid, 'SIGCONT');
    },
    close: async () => {
      closing = true;
      const gone = [...alive].map((child) => once(child, 'exit'));
      for (const child of alive) child.kill('SIGKILL');
      await Promise.all(gone);
    },
  };
}

function isStopped(pid: number): boolean {
  try {
    return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
      .trim()
      .startsWith('T');
  } catch {
    return false;
  }
}
