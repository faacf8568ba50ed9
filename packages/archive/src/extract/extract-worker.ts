import { MessagePort, parentPort, workerData } from 'node:worker_threads';
import { ArchiveError, asWriteError, refuse } from '../format/archive-error';
import { blockName } from '../format/archive-objects';
import { decodeBlock } from '../format/index-block';
import { releaseMemory } from '../format/release-memory';
import { openObject } from '../format/sealed-object';
import type { BlockTask } from '../read/check-tree';
import type { SegmentOrigin } from '../read/read-contents';
import { BlockExtraction } from './extract-block';
import type { WorkerAnswer, WorkerMessage, WorkerRequest, WorkerSetup, WorkerStart } from './extract-workers';

/**
 * The program of a worker thread of `extract`. It does one extraction after the other. It requests objects from the
 * main thread, because only that has the source.
 */
const port = parentPort ?? refuse('write_failed', 'to be loaded as a worker thread only');
const waiting = new Map<number, (answer: WorkerAnswer) => void>();
let requests = 0;

port.on('message', (message: WorkerStart | WorkerAnswer) => {
  if ('start' in message) {
    void work(message.start);
    return;
  }
  waiting.get(message.id)?.(message);
  waiting.delete(message.id);
});

async function work(setup: WorkerSetup): Promise<void> {
  const origins = setup.archives.map(originOf);
  try {
    for (let task = await nextTask(); task !== null; task = await nextTask()) await extractTask(setup, origins, task);
    post({ type: 'finished' });
  } catch (error) {
    const { reason, message } = error instanceof ArchiveError ? error : asWriteError(error);
    post({ type: 'failed', reason, detail: message.slice(reason.length + 2) });
  }
}

const originOf = (keys: WorkerSetup['archives'][number], archive: number): SegmentOrigin => ({
  keys: {
    salt: Buffer.from(keys.salt),
    archiveTag: Buffer.from(keys.archiveTag),
    encryption: Buffer.from(keys.encryption),
    authentication: Buffer.from(keys.authentication),
  },
  source: { read: (name) => readObject(archive, name) },
  freesFrames: true,
});

async function extractTask(setup: WorkerSetup, origins: readonly SegmentOrigin[], task: BlockTask): Promise<void> {
  const origin = origins[task.archive] ?? refuse('mismatch', 'task of an unknown archive');
  const bytes = await origin.source.read(blockName(task.block));
  const seal = { size: task.seal.size, mac: Buffer.from(task.seal.mac) };
  const place = { kind: 'block', number: task.block } as const;
  // The block's MAC is compared again, so these bytes are the same that were checked before the first write.
  const block = decodeBlock(await openObject(origin.keys, place, bytes, seal), 'tree');
  const done = await new BlockExtraction(setup, origin, block).run(task.live);
  releaseMemory(block.raw);
  post({ type: 'progress', ...done });
}

async function nextTask(): Promise<BlockTask | null> {
  const answer = await ask((id) => ({ id, want: 'task' }));
  return 'task' in answer ? answer.task : null;
}

async function readObject(archive: number, name: string): Promise<Buffer> {
  const answer = await ask((id) => ({ id, want: 'object', archive, name }));
  if (!('object' in answer)) refuse('truncated', `no answer for ${name}`);
  return Buffer.from(answer.object.buffer, answer.object.byteOffset, answer.object.byteLength);
}

function ask(request: (id: number) => WorkerRequest): Promise<WorkerAnswer> {
  requests += 1;
  const id = requests;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    post({ type: 'request', request: request(id) });
  });
}

function post(message: WorkerMessage): void {
  port.postMessage(message);
}

/**
 * Closing the port tells the main thread that everything is loaded. The main thread must not end this thread before
 * that.
 */
if (workerData instanceof MessagePort) workerData.close();
