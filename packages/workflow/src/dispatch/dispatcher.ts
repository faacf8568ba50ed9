import { faultpoint } from '@drydock/process/faultpoint';
import type { Database } from '@drydock/service/database/sql';
import { enginePoints } from '../definition/definition';
import { messageOf } from '../definition/step-error';
import { announceDue } from '../store/listener';
import { activeTraceparent } from '../store/telemetry';
import { type Doorbell, type DoorbellQueue, type Lane, laneQueueName, openQueue, type QueueAddress } from './queue';

/** The accepting process's way to have its workflow begun at once. */
export interface Dispatcher {
  /** Call after the commit. Returns at once and never throws; a ring that gets lost is made up for by the sweep. */
  ring(workflow: RungWorkflow, lane?: Lane): void;
  close(): Promise<void>;
}

/** What a ring names. */
export type RungWorkflow = Pick<Doorbell, 'workflowId' | 'orgId'>;

/** More doorbells than this waiting, and the sweep decides the order: fairly between organisations, which a queue is not. */
const waitingMax = 50;
/** How long a look at the queue's length is believed. */
const lookMs = 250;

export interface DispatcherOptions<Tx> extends QueueAddress {
  database: Database<Tx>;
}

/** Nothing is written to Postgres for a ring: until a worker claims it, the row looks as if nobody had rung, and the sweep would after 300 ms. */
export function createDispatcher<Tx>(options: DispatcherOptions<Tx>): Dispatcher {
  const { database, log } = options;
  const queues = { usual: openLane(options, 'usual'), prompt: openLane(options, 'prompt') };
  const inFlight = new Set<Promise<void>>();
  const dispatch = async ({ workflowId, orgId }: RungWorkflow, lane: Lane): Promise<void> => {
    const { queue, depth } = queues[lane];
    const traceparent = activeTraceparent();
    try {
      faultpoint(enginePoints.dispatchBefore);
      if (depth.ring() > waitingMax) await announceDue(database.sql());
      else await queue.ring({ workflowId, orgId, ...(traceparent === undefined ? {} : { traceparent }) }, 0);
      faultpoint(enginePoints.dispatchAfter);
    } catch (error) {
      log.info({ workflow_id: workflowId, internal: messageOf(error) }, 'not rung; the sweep will');
    }
  };
  return {
    ring: (workflow, lane = 'usual') => {
      const ringing = dispatch(workflow, lane).finally(() => inFlight.delete(ringing));
      inFlight.add(ringing);
    },
    close: async () => {
      await Promise.all(inFlight);
      await Promise.all(Object.values(queues).map(({ queue }) => queue.close()));
    },
  };
}

function openLane({ queueUrl, queueName, log }: QueueAddress, lane: Lane) {
  const queue = openQueue({ queueUrl, queueName: laneQueueName(queueName, lane), log });
  return { queue, depth: estimateDepth(queue) };
}

/** The queue's length as last seen, and what was added since. */
function estimateDepth(queue: DoorbellQueue): { ring(): number } {
  let waiting = 0;
  let added = 0;
  let nextLookMs = 0;
  const look = async (): Promise<void> => {
    const before = added;
    waiting = await queue.waiting();
    added -= before;
  };
  return {
    ring: () => {
      const nowMs = performance.now();
      added += 1;
      if (nowMs >= nextLookMs) {
        nextLookMs = nowMs + lookMs;
        look().catch(() => undefined);
      }
      return waiting + added;
    },
  };
}
