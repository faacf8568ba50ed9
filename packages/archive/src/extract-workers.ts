import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ArchiveError, asWriteError, refuse } from './archive-error';
import type { OpenArchive } from './open-archive';
import type { BlockTask, WorkerAnswer, WorkerMessage, WorkerRequest, WorkerSetup } from './worker-messages';

/** A small nursery: a worker's objects live for one block at most. */
const resourceLimits = { maxYoungGenerationSizeMb: 2 };

export interface WorkerPlan {
  archives: readonly OpenArchive[];
  /** Asked for while the threads start. When it rejects, nothing has been written. */
  tasks(): Promise<readonly BlockTask[]>;
  setup: WorkerSetup;
  workers: number;
  signal?: AbortSignal;
  onProgress: (done: { entries: number; rawBytes: number }) => void;
}

/**
 * Path of the compiled worker. Under a TypeScript loader (jest) this file lies in src and a thread cannot load its neighbour, so the built
 * one is used.
 * @throws Error when the package has not been built
 */
export function workerScript(): string {
  const folder = basename(__dirname) === 'src' ? join(dirname(__dirname), 'dist') : __dirname;
  const script = join(folder, 'extract-worker.js');
  if (!existsSync(script)) throw new Error('packages/archive is not built: run `pnpm exec tsc -b packages/archive` first');
  return script;
}

/** Extracts all tasks by worker threads. When it settles, no thread writes any more. */
export async function runWorkers(plan: WorkerPlan): Promise<void> {
  const script = workerScript();
  const threads = Array.from({ length: plan.workers }, () => new Worker(script, { workerData: plan.setup, resourceLimits }));
  const queue = plan.tasks().then((tasks) => tasks[Symbol.iterator]());
  const nextTask = async (): Promise<BlockTask | null> => (await queue).next().value ?? null;
  const stop = new AbortController();
  try {
    await Promise.all(threads.map((thread) => runThread(thread, plan, nextTask, stop.signal)));
  } finally {
    stop.abort();
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}

function runThread(thread: Worker, plan: WorkerPlan, nextTask: () => Promise<BlockTask | null>, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(plan.signal?.reason);
    plan.signal?.addEventListener('abort', abort, { once: true });
    stopped.addEventListener('abort', () => plan.signal?.removeEventListener('abort', abort), { once: true });
    if (plan.signal?.aborted === true) abort();
    thread.on('error', (error) => reject(asWriteError(error)));
    thread.on('exit', (code) => reject(new ArchiveError('write_failed', `a worker ended by itself, code ${code}`)));
    thread.on('message', (message: WorkerMessage) => {
      if (message.type === 'progress') plan.onProgress(message);
      else if (message.type === 'finished') resolve();
      else if (message.type === 'failed') reject(new ArchiveError(message.reason, message.detail));
      else answer(message.request, plan, nextTask).then((reply) => thread.postMessage(reply, movable(reply)), reject);
    });
  });
}

async function answer(request: WorkerRequest, plan: WorkerPlan, nextTask: () => Promise<BlockTask | null>): Promise<WorkerAnswer> {
  if (request.want === 'task') return { id: request.id, task: await nextTask() };
  const archive = plan.archives[request.archive] ?? refuse('mismatch', 'a worker asked for an unknown archive');
  return { id: request.id, object: await archive.source.read(request.name) };
}

/** A Buffer with memory of its own is moved to the thread, not copied. */
function movable(reply: WorkerAnswer): ArrayBuffer[] {
  if (!('object' in reply) || !(reply.object.buffer instanceof ArrayBuffer)) return [];
  return reply.object.byteLength === reply.object.buffer.byteLength ? [reply.object.buffer] : [];
}
