import { faultpoint } from '@drydock/process';
import type { Database } from '@drydock/service/database';
import { withoutSpans } from '@drydock/service/telemetry';
import { enginePoints } from '../definition/definition';
import { messageOf } from '../definition/step-error';
import { announceDue } from '../store/listener';
import { activeTraceparent } from '../store/telemetry';
import { type JobQueue, openQueue, type QueueAddress, type QueueKind, queueNameOf, type WorkflowJob } from './queue';

/** Makes an accepted workflow begin at once. */
export interface Dispatcher {
  /** Call it after the commit. Returns at once and never throws. The sweep replaces a lost job. */
  enqueue(workflow: JobTarget, queue?: QueueKind): void;
  close(): Promise<void>;
}

/** The workflow that a job is for, and its kind. */
export type JobTarget = Pick<WorkflowJob, 'workflowId' | 'orgId'> & { kind: string };

/**
 * The most waiting jobs to which a new one is added directly. Above it the sweep decides the order, because the sweep
 * is fair between organisations and a queue is not.
 */
const waitingMax = 50;
/** How long a reading of the queue's length is trusted. */
const lookMs = 250;

export interface DispatcherOptions<Tx> extends QueueAddress {
  database: Database<Tx>;
}

/**
 * Postgres does not record the job. Until a worker claims the row, the sweep cannot tell whether a job was enqueued,
 * and enqueues another after 300 ms.
 */
export function createDispatcher<Tx>(options: DispatcherOptions<Tx>): Dispatcher {
  const { database, log } = options;
  const queues = {
    default: openAcceptingQueue(options, 'default'),
    interactive: openAcceptingQueue(options, 'interactive'),
  };
  const inFlight = new Set<Promise<void>>();
  const dispatch = async ({ workflowId, orgId, kind }: JobTarget, queueKind: QueueKind): Promise<void> => {
    const { queue, depth } = queues[queueKind];
    const traceparent = activeTraceparent();
    try {
      faultpoint(enginePoints.dispatchBefore);
      if (depth.afterOneMore() > waitingMax) await announceDue(database.sql());
      else await queue.enqueue(kind, { workflowId, orgId, ...(traceparent === undefined ? {} : { traceparent }) });
      faultpoint(enginePoints.dispatchAfter);
    } catch (error) {
      log.info({ workflow_id: workflowId, internal: messageOf(error) }, 'not enqueued; the sweep will');
    }
  };
  return {
    enqueue: (workflow, queueKind = 'default') => {
      const enqueueing = dispatch(workflow, queueKind).finally(() => inFlight.delete(enqueueing));
      inFlight.add(enqueueing);
    },
    close: async () => {
      await Promise.all(inFlight);
      await Promise.all(Object.values(queues).map(({ queue }) => queue.close()));
    },
  };
}

function openAcceptingQueue({ queueUrl, queueName, log }: QueueAddress, kind: QueueKind) {
  const queue = openQueue({ queueUrl, queueName: queueNameOf(queueName, kind), log });
  return { queue, depth: estimateDepth(queue) };
}

/** The queue's last known length, plus the jobs added since. */
function estimateDepth(queue: JobQueue): { afterOneMore(): number } {
  let waiting = 0;
  let added = 0;
  let nextLookMs = 0;
  const look = async (): Promise<void> => {
    const before = added;
    waiting = await withoutSpans(() => queue.waiting());
    added -= before;
  };
  return {
    afterOneMore: () => {
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
