import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** A small nursery: a worker's objects live for one block at most. */
const resourceLimits = { maxYoungGenerationSizeMb: 2 };
/** As many as one extraction uses. */
const restingMax = 2;

/** Threads that have extracted before: their code is compiled, which is a fifth of the time that new ones take for 20,000 files. */
const resting: Worker[] = [];

/** A thread that waits for its start: one at rest, or a new one. */
export function takeThread(): Worker {
  const thread = resting.pop() ?? new Worker(workerScript(), { resourceLimits });
  thread.removeAllListeners();
  thread.ref();
  return thread;
}

/** Keeps a thread that has finished for the next extraction. It does not keep the process from ending. */
export function restThread(thread: Worker): void {
  thread.removeAllListeners();
  if (resting.length >= restingMax) {
    void thread.terminate();
    return;
  }
  thread.on('error', () => undefined); // its exit follows
  thread.once('exit', () => {
    const at = resting.indexOf(thread);
    if (at >= 0) resting.splice(at, 1);
  });
  thread.unref();
  resting.push(thread);
}

/**
 * Path of the compiled worker. Under a TypeScript loader (jest) this file lies in src and a thread cannot load its neighbour, so the built
 * one is used.
 * @throws Error when the package has not been built
 */
function workerScript(): string {
  const folder = basename(__dirname) === 'src' ? join(dirname(__dirname), 'dist') : __dirname;
  const script = join(folder, 'extract-worker.js');
  if (!existsSync(script)) throw new Error('packages/archive is not built: run `npm run build` first');
  return script;
}
