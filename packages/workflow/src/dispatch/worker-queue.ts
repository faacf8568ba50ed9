import { messageOf } from '../definition/step-error';
import type { RunEnd } from '../runner/execution';
import { openQueue, type QueueAddress, type QueueKind, queueNameOf, type WorkflowJob } from './queue';
import { createSlots, type Slots, slotsFor } from './slots';
import type { SweptQueue } from './sweep';
import { firstOrg } from './sweep.store';
import { type JobWorker, openWorker } from './worker';

export interface WorkerQueue extends SweptQueue {
  /**
   * Takes jobs from now on. `refill` is called once a delivery has made room for work that the last sweep could not
   * enqueue.
   */
  startWorker(handle: (job: WorkflowJob, slots: Slots) => Promise<RunEnd>, refill: () => void): void;
  /** Takes no more jobs and waits for the running ones. */
  close(): Promise<void>;
}

interface WorkerQueueOptions extends QueueAddress {
  concurrency: number;
  interactiveConcurrency?: number;
}

/** Requests wait for these, and they are short until they have begun. */
const interactiveConcurrencyDefault = 2;

/** A worker's side of one queue: its sweep's jobs, and the worker that handles them. */
export function openWorkerQueue(
  { queueUrl, queueName, log, ...slots }: WorkerQueueOptions,
  kind: QueueKind,
): WorkerQueue {
  const address = { queueUrl, queueName: queueNameOf(queueName, kind), log };
  const concurrency =
    kind === 'default' ? slots.concurrency : (slots.interactiveConcurrency ?? interactiveConcurrencyDefault);
  const total = slotsFor(concurrency);
  const shared = createSlots(total);
  const queue = openQueue(address);
  let deliveredAtMs = performance.now();
  let worker: JobWorker | undefined;
  const own: WorkerQueue = {
    kind,
    queue,
    slots: shared,
    waitingMax: Math.max(32, 4 * concurrency),
    silentSeconds: () => (performance.now() - deliveredAtMs) / 1_000,
    hasBacklog: false,
    fromOrg: firstOrg,
    startWorker: (handle, refill) => {
      const delivered = (): void => {
        deliveredAtMs = performance.now();
        // The sweep puts few jobs into the queue at a time, so the queue is refilled as it empties. Several jobs that
        // are delivered in the same moment cause one refill.
        if (own.hasBacklog) refill();
        own.hasBacklog = false;
      };
      worker = openWorker({ ...address, concurrency: total, handle: (job) => handle(job, shared), delivered });
    },
    close: async () => {
      await worker?.close().catch((error: unknown) => log.warn({ internal: messageOf(error) }, 'worker did not close'));
      await queue.close();
    },
  };
  return own;
}
