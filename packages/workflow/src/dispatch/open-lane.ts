import { messageOf } from '../definition/step-error';
import type { RunEnd } from '../runner/execution';
import { type Consumer, consume } from './consumer';
import { type Doorbell, type Lane, laneQueueName, openQueue, type QueueAddress } from './queue';
import { createSlots, type Slots, slotsFor } from './slots';
import type { LaneQueue } from './sweep';

export interface OpenLane extends LaneQueue {
  /** Takes jobs from now on. `refill` is called once a delivery has made room for what the last sweep could not ring. */
  consume(answer: (bell: Doorbell, slots: Slots) => Promise<RunEnd>, refill: () => void): void;
  /** Takes no more jobs and waits for those in hand. */
  close(): Promise<void>;
}

interface LaneOptions extends QueueAddress {
  concurrency: number;
  promptConcurrency?: number;
}

/** Somebody waits for these, and they are short until they have begun. */
const promptConcurrencyDefault = 2;

/** A worker's side of one lane: the queue that its sweep rings, and the consumer that answers. */
export function openLane({ queueUrl, queueName, log, ...slots }: LaneOptions, lane: Lane): OpenLane {
  const address = { queueUrl, queueName: laneQueueName(queueName, lane), log };
  const concurrency = lane === 'usual' ? slots.concurrency : (slots.promptConcurrency ?? promptConcurrencyDefault);
  const total = slotsFor(concurrency);
  const shared = createSlots(total);
  const queue = openQueue(address);
  let deliveredAtMs = performance.now();
  let consumer: Consumer | undefined;
  const own: OpenLane = {
    lane,
    queue,
    slots: shared,
    waitingMax: Math.max(32, 4 * concurrency),
    silentSeconds: () => (performance.now() - deliveredAtMs) / 1_000,
    hasBacklog: false,
    consume: (answer, refill) => {
      const delivered = (): void => {
        deliveredAtMs = performance.now();
        // The sweep keeps the queue short, so it must refill it as it empties: once for all jobs of a moment.
        if (own.hasBacklog) refill();
        own.hasBacklog = false;
      };
      consumer = consume({ ...address, concurrency: total, answer: (bell) => answer(bell, shared), delivered });
    },
    close: async () => {
      await consumer?.close().catch((error: unknown) => log.warn({ internal: messageOf(error) }, 'consumer did not close'));
      await queue.close();
    },
  };
  return own;
}
