import { setTimeout as wait } from 'node:timers/promises';
import { scaled } from '@drydock/process';
import { openRedis } from '@drydock/service/redis';
import { isFullDetail, suppressTracing } from '@drydock/service/telemetry';
import {
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  isSpanContextValid,
  ROOT_CONTEXT,
  trace,
} from '@opentelemetry/api';
import { createPostgresBackend, Queue, type QueueOptions, runMigrations, type Span, type Telemetry } from 'bullmq';
import { BullMQOtel } from 'bullmq-otel';
import { Client } from 'pg';
import { z } from 'zod';
import type { Log } from '../definition/definition';
import { messageOf } from '../definition/step-error';

/** Adds jobs to a queue. `enqueue` and `waiting` have a time limit, and reject while the queue cannot be reached. */
export interface JobQueue {
  /** Adds a job. `kind` is the kind of the workflow, and the name under which a dashboard shows the job. */
  enqueue(kind: string, job: WorkflowJob): Promise<void>;
  /** The number of jobs that no worker has taken yet. */
  waiting(): Promise<number>;
  close(): Promise<void>;
}

export interface QueueAddress {
  queueUrl: string;
  queueName: string;
  log: Log;
}

/**
 * The time limit of a call. A healthy queue answers sooner. A call that timed out may still add its job. A late job is
 * harmless, because a job only names the workflow to look at.
 */
const callTimeoutMs = 1_500;

export const isPostgresQueue = (queueUrl: string): boolean => /^postgres(ql)?:/.test(queueUrl);

/**
 * The finished jobs of a queue that are kept for dashboards: those of the last day (`age`, in seconds), but no more
 * than about `count`.
 */
const keptJobs = { age: 86_400, count: 1_000 };
const { age } = keptJobs;

/**
 * Every 50th job removes the finished jobs above `count`. In Postgres the removal reads all finished jobs of the queue.
 * If every job did this, each job would take a tenth longer.
 */
const jobsPerTrim = 50;

/** The hash tag keeps all keys of a queue in one slot of a Redis Cluster. */
export const queuePrefix = (queueName: string): string => `{${queueName}}`;

/** Milliseconds until the next attempt to reach a Redis. */
export const reconnectMs = (times: number): number => Math.min(1_000, 50 * times);

export const postgresConnection = (queueUrl: string, connectionsMax: number) => ({
  connectionString: queueUrl,
  max: connectionsMax,
  connectionTimeoutMillis: scaled(1_500),
});

/** How long Redis may take to answer, in milliseconds. Redis may be starting at the same time as this process. */
const redisAnswerMs = 5_000;

/**
 * Prepares the queue before any process uses it. In Postgres this creates or upgrades BullMQ's tables. A Redis needs no
 * preparation and only has to answer. The call may be repeated.
 * @throws with the reason if the queue cannot be reached
 */
export async function prepareQueue(queueUrl: string, answerMs = redisAnswerMs): Promise<void> {
  if (!isPostgresQueue(queueUrl)) return assertAnswers(queueUrl, answerMs);
  const client = new Client({ connectionString: queueUrl });
  await client.connect();
  try {
    await runMigrations(client);
  } finally {
    await client.end();
  }
}

async function assertAnswers(queueUrl: string, withinMs: number): Promise<void> {
  const client = openRedis(queueUrl, {
    commandTimeout: withinMs,
    maxRetriesPerRequest: null,
    retryStrategy: reconnectMs,
  });
  let trouble: unknown;
  client.on('error', (error) => {
    trouble = error;
  });
  try {
    await client.ping();
  } catch (error) {
    throw new Error(`Redis at QUEUE_URL does not answer: ${messageOf(trouble ?? error)}`, { cause: error });
  } finally {
    client.disconnect();
  }
}

export function openQueue(address: QueueAddress): JobQueue {
  const { log } = address;
  const opened = openBullQueue(address);
  let jobs = 0;
  return {
    enqueue: async (kind, job) => {
      jobs += 1;
      const removeOnComplete = job === probeJob || (jobs % jobsPerTrim === 0 ? keptJobs : { age });
      await bounded(opened.queue().add(kind, job, { attempts: 1, removeOnComplete, removeOnFail: keptJobs }));
    },
    waiting: () => bounded(opened.queue().getWaitingCount()),
    close: async () => {
      await bounded(opened.close(), callTimeoutMs).catch((error: unknown) =>
        log.warn({ internal: messageOf(error) }, 'queue did not close in time'),
      );
    },
  };
}

export interface OpenedQueue {
  /** The queue. Throws until it has been reached for the first time. */
  queue(): Queue;
  close(): Promise<void>;
}

/** Opens a queue of BullMQ in Postgres or in Redis, by its URL. */
export const openBullQueue = (address: QueueAddress): OpenedQueue =>
  isPostgresQueue(address.queueUrl) ? postgresQueue(address) : redisQueue(address);

/**
 * Opens a queue in Postgres. The queue is opened again until it answers, because BullMQ never recovers from a failed
 * first connection.
 */
function postgresQueue({ queueUrl, queueName, log }: QueueAddress): OpenedQueue {
  const options = {
    connection: postgresConnection(queueUrl, 4),
    prefix: queuePrefix(queueName),
    telemetry: queueTelemetry(queueName),
  };
  const closing = new AbortController();
  let queue: Queue | undefined;
  const open = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const fresh = new Queue(queueName, options, createPostgresBackend);
      fresh.on('error', (error) => log.warn({ internal: messageOf(error) }, 'queue'));
      try {
        await fresh.waitUntilReady();
        // BullMQ's type of a queue depends on its backend, but both backends have all methods that are called here.
        queue = fresh as unknown as Queue;
        return;
      } catch {
        await fresh.close().catch(() => undefined);
        await wait(1_000, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  };
  const opening = open();
  return {
    queue: () => {
      if (queue === undefined) throw new Error('the queue has not been reached yet');
      return queue;
    },
    close: async () => {
      closing.abort();
      await opening;
      await queue?.close();
    },
  };
}

/**
 * Opens a queue in Redis. BullMQ gets the client only after the client has connected. The client has no offline queue,
 * so a call rejects at once while the client is disconnected. An offline queue would keep the jobs and send them late.
 */
function redisQueue({ queueUrl, queueName, log }: QueueAddress): OpenedQueue {
  const client = openRedis(queueUrl, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: null,
    retryStrategy: reconnectMs,
  });
  let queue: Queue | undefined;
  client.on('error', (error) => log.debug({ internal: messageOf(error) }, 'redis'));
  client.once('ready', () => {
    const options: QueueOptions = {
      connection: client,
      prefix: queuePrefix(queueName),
      telemetry: queueTelemetry(queueName),
    };
    queue = new Queue(queueName, options);
    queue.on('error', (error) => log.warn({ internal: messageOf(error) }, 'queue'));
  });
  return {
    queue: () => {
      if (queue === undefined) throw new Error('the queue has not been reached yet');
      return queue;
    },
    close: async () => {
      await queue?.close();
      client.disconnect();
    },
  };
}

async function bounded<T>(call: Promise<T>, withinMs = scaled(callTimeoutMs)): Promise<T> {
  const timer = new AbortController();
  call.catch(() => undefined);
  const late = wait(withinMs, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`the queue did not answer within ${withinMs} ms`);
  });
  try {
    return await Promise.race([call, late]);
  } finally {
    timer.abort();
    late.catch(() => undefined);
  }
}

/**
 * The whole content of a job. Everything else is in Postgres. A job that names the wrong organisation claims nothing.
 */
export const workflowJobSchema = z.strictObject({
  workflowId: z.uuid(),
  orgId: z.uuid(),
  traceparent: z.string().max(100).optional(),
});
export type WorkflowJob = z.infer<typeof workflowJobSchema>;

const noId = '00000000-0000-7000-8000-000000000000';
/** A job that checks whether the queue still delivers. Its ids belong to no workflow and to no organisation. */
export const probeJob: WorkflowJob = { workflowId: noId, orgId: noId };

/**
 * The two queues of a service. `interactive` is for short work that somebody waits for. It has separate slots, so that
 * long restores do not delay the restart of an application. The sweep uses `interactive` for a workflow that has a
 * `start_by` and was never claimed, and `default` for every other workflow.
 */
export type QueueKind = 'default' | 'interactive';

export const queueKinds: readonly QueueKind[] = ['interactive', 'default'];

export const queueNameOf = (queueName: string, kind: QueueKind): string =>
  kind === 'interactive' ? `${queueName}-interactive` : queueName;

/** The names of BullMQ's spans that are shown in a trace. All other spans are housekeeping of the queue. */
const jobOperations = /^(?:add|process) /;

/**
 * The span of an operation that is not traced: the queue's housekeeping, or an operation on a job outside any trace.
 * This span records nothing and suppresses spans within it.
 */
const noSpan: Span<Context> = {
  setSpanOnContext: (within) => suppressTracing(within),
  setAttribute: () => undefined,
  setAttributes: () => undefined,
  addEvent: () => undefined,
  recordException: () => undefined,
  end: () => undefined,
};

/**
 * Whether a new span would belong to a trace. Probes belong to no trace, nor do the jobs of workflows that a schedule
 * has started. A workflow of a schedule begins its own trace when it runs.
 */
const isInTrace = (within: Context): boolean =>
  isSpanContextValid(trace.getSpanContext(within) ?? INVALID_SPAN_CONTEXT);

/**
 * Makes BullMQ's spans. A job whose trace metadata is not JSON is treated as a job without a trace. Otherwise the error
 * would leave the job active for ever.
 */
export function queueTelemetry(tracerName: string): Telemetry<Context> {
  const { contextManager, tracer } = new BullMQOtel({ tracerName });
  return {
    tracer: {
      startSpan: (name, options, parent) =>
        isFullDetail || (jobOperations.test(name) && isInTrace(parent ?? context.active()))
          ? tracer.startSpan(name, options, parent)
          : noSpan,
    },
    contextManager: {
      active: () => contextManager.active(),
      root: () => ROOT_CONTEXT,
      with: (within, work) => contextManager.with(within, work),
      getMetadata: (within) => contextManager.getMetadata(within),
      fromMetadata: (active, metadata) => {
        try {
          return contextManager.fromMetadata(active, metadata);
        } catch {
          return active;
        }
      },
    },
  };
}
