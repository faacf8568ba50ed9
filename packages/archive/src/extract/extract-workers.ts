import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { LostPart } from '../files/metadata';
import { ArchiveError, type ArchiveReason, asWriteError, refuse } from '../format/archive-error';
import type { ByteString } from '../format/path-bytes';
import type { BlockTask } from '../read/check-tree';
import type { OpenArchive } from '../read/open-archive';

/** The input of a worker for the extraction of one root. */
export interface WorkerSetup {
  directory: string;
  root: string;
  archives: { salt: Uint8Array; archiveTag: Uint8Array; encryption: Uint8Array; authentication: Uint8Array }[];
  owner: Owner | null;
  /**
   * The umask of the process. The main thread reads it for all workers, because each reading sets it to 0 for a moment
   * for the whole process.
   */
  umask: number;
}

export interface Owner {
  uid: number;
  gid: number;
}

/** A path that is missing or incomplete in the restored tree. `part` is the reason. */
export interface LostPath {
  path: ByteString;
  part: LostPart;
}

/**
 * A request of a worker to the main thread. The answer has the same id. If the request fails, the main thread ends the
 * worker instead of answering.
 */
export type WorkerRequest =
  | { id: number; want: 'task' }
  | { id: number; want: 'object'; archive: number; name: string };

export type WorkerMessage =
  | { type: 'request'; request: WorkerRequest }
  | { type: 'progress'; entries: number; rawBytes: number; lost: LostPath[] }
  | { type: 'finished' }
  | { type: 'failed'; reason: ArchiveReason; detail: string };

/**
 * Starts an extraction in an idle worker. The worker's last message about the extraction is `finished` or `failed`.
 * After `finished` the worker is idle again.
 */
export interface WorkerStart {
  start: WorkerSetup;
}

export type WorkerAnswer = { id: number; task: BlockTask | null } | { id: number; object: Uint8Array };

/** Limits a heap's young generation to save memory. Most objects of a worker live only while it extracts one block. */
const resourceLimits = { maxYoungGenerationSizeMb: 2 };
/** The most idle threads that are kept. One extraction uses this number of threads by default. */
const restingMax = 2;

/**
 * Idle threads of earlier extractions. Their code is already compiled. A new thread would add a fifth to the time of an
 * extraction of 20,000 files.
 */
const resting: Worker[] = [];

/** Takes an idle thread, or starts a new thread. */
export function takeThread(): Worker {
  const thread = resting.pop() ?? startThread();
  // Node itself adds listeners to a new thread. They are removed before the thread gets work. If `restThread` removed
  // them later, the message port would stop for good.
  thread.removeAllListeners();
  thread.ref();
  return thread;
}

/**
 * For each thread, a promise that resolves when the thread closes its port: when it has loaded everything, or has
 * ended.
 */
const loaded = new WeakMap<Worker, Promise<unknown>>();

function startThread(): Worker {
  const { port1, port2 } = new MessageChannel();
  const thread = new Worker(workerScript(), { resourceLimits, workerData: port2, transferList: [port2] });
  loaded.set(thread, new Promise((resolve) => port1.once('close', resolve)));
  port1.unref();
  return thread;
}

/**
 * Waits until a thread is loaded, and ends it. Interrupting the loading of a native module would crash the whole
 * process.
 */
export async function endThread(thread: Worker): Promise<void> {
  await loaded.get(thread);
  await thread.terminate();
}

/**
 * Keeps a finished thread for the next extraction, or ends it if enough threads are idle. An idle thread does not keep
 * the process alive.
 */
export function restThread(thread: Worker): void {
  thread.removeAllListeners();
  if (resting.length >= restingMax) {
    void endThread(thread);
    return;
  }
  thread.on('error', () => undefined); // an `exit` event follows
  thread.once('exit', () => {
    const at = resting.indexOf(thread);
    if (at >= 0) resting.splice(at, 1);
  });
  thread.unref();
  resting.push(thread);
}

/**
 * Returns the path of the compiled worker. Under jest this file is in `src`, and a thread cannot load TypeScript, so
 * the built file is used.
 * @throws Error when the package is not built
 */
function workerScript(): string {
  const folder = join(__dirname, '../../dist/extract');
  const script = join(folder, 'extract-worker.js');
  if (!existsSync(script)) throw new Error('packages/archive is not built: run `npm run build` first');
  return script;
}

interface WorkerPlan {
  archives: readonly OpenArchive[];
  /** Returns the blocks to extract. This function runs while the threads start. If it rejects, nothing was written. */
  tasks(): Promise<readonly BlockTask[]>;
  setup: WorkerSetup;
  workers: number;
  signal?: AbortSignal;
  onProgress: (done: { entries: number; rawBytes: number; lost: readonly LostPath[] }) => void;
}

/** Extracts all tasks with worker threads. When the promise settles, no thread writes any more. */
export async function runWorkers(plan: WorkerPlan): Promise<void> {
  const threads = Array.from({ length: plan.workers }, takeThread);
  const queue = plan.tasks().then((tasks) => tasks[Symbol.iterator]());
  const nextTask = async (): Promise<BlockTask | null> => (await queue).next().value ?? null;
  const stop = new AbortController();
  try {
    // A refusal by `tasks` ends the extraction at once, even if no thread has requested work yet.
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

/**
 * Lists the memory of a reply that can be moved to a thread. A Buffer that shares its memory with other Buffers is not
 * listed, so it is copied.
 */
function movable(reply: WorkerAnswer): ArrayBuffer[] {
  if (!('object' in reply) || !(reply.object.buffer instanceof ArrayBuffer)) return [];
  return reply.object.byteLength === reply.object.buffer.byteLength ? [reply.object.buffer] : [];
}
