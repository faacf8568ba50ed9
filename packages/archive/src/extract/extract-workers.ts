import type { Worker } from 'node:worker_threads';
import { ArchiveError, asWriteError, refuse } from '../format/archive-error';
import type { OpenArchive } from '../read/open-archive';
import { endThread, restThread, takeThread } from './extract-threads';
import type {
  BlockTask,
  LostPath,
  WorkerAnswer,
  WorkerMessage,
  WorkerRequest,
  WorkerSetup,
  WorkerStart,
} from './worker-messages';

export interface WorkerPlan {
  archives: readonly OpenArchive[];
  /** Called while the threads start. When it rejects, nothing has been written. */
  tasks(): Promise<readonly BlockTask[]>;
  setup: WorkerSetup;
  workers: number;
  signal?: AbortSignal;
  onProgress: (done: { entries: number; rawBytes: number; lost: readonly LostPath[] }) => void;
}

/** Extracts all tasks with worker threads. When it settles, no thread writes any more. */
export async function runWorkers(plan: WorkerPlan): Promise<void> {
  const threads = Array.from({ length: plan.workers }, takeThread);
  const queue = plan.tasks().then((tasks) => tasks[Symbol.iterator]());
  const nextTask = async (): Promise<BlockTask | null> => (await queue).next().value ?? null;
  const stop = new AbortController();
  try {
    // A refusal before the first write ends the extraction at once, even when no thread has asked for work yet.
    await Promise.all([queue, ...threads.map((thread) => runThread(thread, plan, nextTask, stop.signal))]);
    stop.abort();
    threads.forEach(restThread);
  } catch (error) {
    stop.abort();
    await Promise.all(threads.map(endThread));
    throw error;
  }
}

function runThread(
  thread: Worker,
  plan: WorkerPlan,
  nextTask: () => Promise<BlockTask | null>,
  stopped: AbortSignal,
): Promise<void> {
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
    thread.postMessage({ start: plan.setup } satisfies WorkerStart);
  });
}

async function answer(
  request: WorkerRequest,
  plan: WorkerPlan,
  nextTask: () => Promise<BlockTask | null>,
): Promise<WorkerAnswer> {
  if (request.want === 'task') return { id: request.id, task: await nextTask() };
  const archive = plan.archives[request.archive] ?? refuse('mismatch', 'a worker asked for an unknown archive');
  return { id: request.id, object: await archive.source.read(request.name) };
}

/** A Buffer with memory of its own is moved to the thread instead of being copied. */
function movable(reply: WorkerAnswer): ArrayBuffer[] {
  if (!('object' in reply) || !(reply.object.buffer instanceof ArrayBuffer)) return [];
  return reply.object.byteLength === reply.object.buffer.byteLength ? [reply.object.buffer] : [];
}
