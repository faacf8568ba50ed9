import { faultpoint } from '@drydock/process';
import type { Database } from '@drydock/service/database';
import { withoutSpans } from '@drydock/service/telemetry';
import { enginePoints } from '../definition/definition';
import { messageOf } from '../definition/step-error';
import { announceDue } from '../store/listener';
import { activeTraceparent } from '../store/telemetry';
import { type JobQueue, openQueue, type QueueAddress, type QueueKind, queueNameOf, type WorkflowJob } from './queue';

/** Enqueues a job for an accepted workflow, so that the workflow begins at once. */
export interface Dispatcher {
  /**
   * Must be called after the commit. Returns at once and never throws. If the job is lost, the sweep adds another one.
   */
  enqueue(workflow: JobTarget, queue?: QueueKind): void;
  close(): Promise<void>;
}

export type JobTarget = Pick<WorkflowJob, 'workflowId' | 'orgId'> & { kind: string };

/**
 * The number of waiting jobs up to which `enqueue` adds a job. Above this number the sweep decides the order, because
 * the sweep is fair between organisations and a queue is not.
 */
const waitingMax = 50;
/** Milliseconds for which a reading of the queue's length is used. */
const lookMs = 250;

export interface DispatcherOptions<Tx> extends QueueAddress {
  database: Database<Tx>;
}

/**
 * Opens the dispatcher. The dispatcher does not record in Postgres that it has added a job. So the sweep adds another
 * job if no worker claims the workflow within 300 ms.
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

/** Estimates the queue's length: the last reading plus the jobs that this process has added since. */
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
