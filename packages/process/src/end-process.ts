import { setTimeout as sleep } from 'node:timers/promises';
import { isSameProcess, listProcessesIn, type ProcessProof } from './process-proof';

/**
 * Ends this process, but no later one with its pid. Sends the signals one after the other, and waits `graceMs` after
 * each. Resolves with false if the process still runs, for example in an uninterruptible wait.
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

/** Sends a signal. A process that has already ended is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Waits until no other process works in a folder, because a second server would destroy the data. */
export async function waitUntilLeft(folder: string, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  for (;;) {
    const left = listProcessesIn(folder).filter((pid) => pid !== process.pid);
    if (left.length === 0) return;
    if (performance.now() > until) throw new Error(`Processes ${left.join(', ')} still work in ${folder}`);
    await sleep(50);
  }
}
