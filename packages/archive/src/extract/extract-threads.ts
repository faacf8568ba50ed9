import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MessageChannel, Worker } from 'node:worker_threads';

/** A small young generation of the heap: the objects of a worker live for one block at most. */
const resourceLimits = { maxYoungGenerationSizeMb: 2 };
/** As many as one extraction uses. */
const restingMax = 2;

/**
 * Threads that have already extracted something. Their code is compiled. For 20,000 files, new threads spend a fifth of
 * their time on compiling.
 */
const resting: Worker[] = [];

/** A thread that waits for its start: an idle one, or a new one. */
export function takeThread(): Worker {
  const thread = resting.pop() ?? startThread();
  // A new thread needs this, too: Node's own listeners would stop its messages for good when it becomes idle.
  thread.removeAllListeners();
  thread.ref();
  return thread;
}

/** Resolves when a thread has loaded all that it needs, or has ended. It then closes the port that it was given. */
const loaded = new WeakMap<Worker, Promise<unknown>>();

function startThread(): Worker {
  const { port1, port2 } = new MessageChannel();
  const thread = new Worker(workerScript(), { resourceLimits, workerData: port2, transferList: [port2] });
  loaded.set(thread, new Promise((resolve) => port1.once('close', resolve)));
  port1.unref();
  return thread;
}

/**
 * Ends a thread, whatever it is doing, but not before it is loaded. A native module that is interrupted while it loads
 * takes the whole process down.
 */
export async function endThread(thread: Worker): Promise<void> {
  await loaded.get(thread);
  await thread.terminate();
}

/** Keeps a thread that has finished for the next extraction. An idle thread does not keep the process from ending. */
export function restThread(thread: Worker): void {
  thread.removeAllListeners();
  if (resting.length >= restingMax) {
    void endThread(thread);
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
 * Path of the compiled worker. Under a TypeScript loader (jest) this file lies in src and a thread cannot load its
 * neighbour, so the built one is used.
 * @throws Error when the package has not been built
 */
function workerScript(): string {
  const folder = join(__dirname, '../../dist/extract');
  const script = join(folder, 'extract-worker.js');
  if (!existsSync(script)) throw new Error('packages/archive is not built: run `npm run build` first');
  return script;
}
