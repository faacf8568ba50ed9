import { setTimeout as wait } from 'node:timers/promises';
import { openRedis } from '@drydock/service/redis';
import { trace } from '@opentelemetry/api';
import { createPostgresBackend, type Job, type PgPool, Worker, type WorkerOptions } from 'bullmq';
import { Pool, type PoolClient, type PoolConfig } from 'pg';
import { messageOf } from '../definition/step-error';
import type { RunEnd } from '../store/claim.types';
import { markFailed } from '../store/telemetry';
import {
  isPostgresQueue,
  openQueue,
  postgresConnection,
  probeJob,
  type QueueAddress,
  type QueueKind,
  queueNameOf,
  queuePrefix,
  queueTelemetry,
  reconnectMs,
  type WorkflowJob,
  workflowJobSchema,
} from './queue';
import { createSlots, type Slots, slotsFor } from './slots';
import type { SweptQueue } from './sweep';
import { firstOrg } from './sweep.store';

interface JobWorkerOptions extends QueueAddress {
  concurrency: number;
  handle(job: WorkflowJob): Promise<RunEnd>;
  /** Called for each delivered job, because a delivery shows that the queue works. */
  delivered(): void;
}

interface JobWorker {
  /** Takes no more jobs and waits for the running jobs. */
  close(): Promise<void>;
}

/**
 * Opens a worker of BullMQ. A job only names a workflow. Postgres decides whether the workflow has work to do, however
 * often its job is delivered. The processor of jobs never rejects, because the sweep and not BullMQ repeats lost work.
 */
export function openWorker(options: JobWorkerOptions): JobWorker {
  const { queueUrl, queueName, log } = options;
  const common = {
    prefix: queuePrefix(queueName),
    telemetry: queueTelemetry(queueName),
    concurrency: options.concurrency,
    // Milliseconds to pause after a refused connection. BullMQ's default is 15 s.
    runRetryDelay: 1_000,
    // Seconds that a blocking call waits for a job.
    drainDelay: 10,
  };
  const processor = (job: Job): Promise<void> => handleJob(options, job);
  const { worker, close } = isPostgresQueue(queueUrl)
    ? onPostgres(options, common, processor)
    : onRedis(options, common, processor);
  worker.on('error', (error) => log.warn({ internal: messageOf(error) }, 'worker'));
  return { close };
}

type Common = Omit<WorkerOptions, 'connection'>;
type Processor = (job: Job) => Promise<void>;
interface Running {
  worker: { on(event: 'error', listener: (error: Error) => void): unknown };
  close(): Promise<void>;
}

function onPostgres({ queueUrl, queueName }: QueueAddress, common: Common, processor: Processor): Running {
  // One of the five connections listens for notifications.
  const pool = new RetryingPool(postgresConnection(queueUrl, 5));
  const worker = new Worker(queueName, processor, { ...common, connection: pool.forBullmq() }, createPostgresBackend);
  return {
    worker,
    close: async () => {
      pool.stopRetrying();
      await worker.close();
      await pool.end();
    },
  };
}

/**
 * Opens a worker on Redis. BullMQ duplicates the client, and uses the second one for blocking calls. Both clients
 * reconnect until Redis answers.
 */
function onRedis({ queueUrl, queueName, log }: QueueAddress, common: Common, processor: Processor): Running {
  const client = openRedis(queueUrl, { maxRetriesPerRequest: null, retryStrategy: reconnectMs });
  client.on('error', (error) => log.debug({ internal: messageOf(error) }, 'redis'));
  const worker = new Worker(queueName, processor, { ...common, connection: client });
  return {
    worker,
    close: async () => {
      await worker.close();
      client.disconnect();
    },
  };
}

async function handleJob(options: JobWorkerOptions, job: Job): Promise<void> {
  options.delivered();
  const span = trace.getActiveSpan();
  span?.setAttributes({
    'messaging.system': 'bullmq',
    'messaging.destination.name': options.queueName,
    'messaging.operation.type': 'process',
    'messaging.operation.name': 'process',
    'messaging.message.id': job.id ?? '',
  });
  const parsed = workflowJobSchema.safeParse(job.data);
  if (!parsed.success) {
    options.log.warn({ job_id: String(job.id).slice(0, 100) }, 'a job of another shape was ignored');
    return;
  }
  if (parsed.data.workflowId === probeJob.workflowId) return;
  try {
    const end = await options.handle(parsed.data);
    if (span !== undefined && unhappy.has(end)) markFailed(span, end);
  } catch (error) {
    if (span !== undefined) markFailed(span, error instanceof Error ? error.name : 'unknown');
    options.log.warn({ workflow_id: parsed.data.workflowId, internal: messageOf(error) }, 'a job could not be handled');
  }
}

const unhappy: ReadonlySet<RunEnd> = new Set<RunEnd>(['failed', 'needs_attention', 'left']);

type ConnectCallback = Parameters<Pool['connect']>[0];

const pauseMs = 500;

/**
 * A pool that connects again until its database answers. BullMQ itself never recovers from a failed first connection,
 * and retries a later failure without a pause. Each failure is reported as an `error` event.
 */
class RetryingPool extends Pool {
  private isRetrying = true;

  constructor(config: PoolConfig) {
    // BullMQ sets the same option for its own pools.
    super({ ...config, options: '-c search_path=bullmq' });
  }

  /** This pool with BullMQ's type `PgPool`. The two types differ only in the overloads of `on`. */
  forBullmq(): PgPool {
    return this as unknown as PgPool;
  }

  /** Makes a failed `connect` reject instead of trying again. It is called before the pool is closed. */
  stopRetrying(): void {
    this.isRetrying = false;
  }

  override connect(): Promise<PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<PoolClient> | undefined {
    const connected = this.connectAtLast();
    if (callback === undefined) return connected;
    connected.then(
      (client) => callback(undefined, client, (release) => client.release(release)),
      (error: Error) => callback(error, undefined, () => undefined),
    );
    return undefined;
  }

  private async connectAtLast(): Promise<PoolClient> {
    for (;;) {
      try {
        return await super.connect();
      } catch (error) {
        if (!this.isRetrying || this.ending) throw error;
        this.emit('error', error);
      }
      await wait(pauseMs);
    }
  }
}

export interface WorkerQueue extends SweptQueue {
  /**
   * Begins to take jobs. `refill` is called when a delivered job has made room for work that the last sweep could not
   * enqueue.
   */
  startWorker(handle: (job: WorkflowJob, slots: Slots) => Promise<RunEnd>, refill: () => void): void;
  close(): Promise<void>;
}

interface WorkerQueueOptions extends QueueAddress {
  concurrency: number;
  interactiveConcurrency?: number;
}

const interactiveConcurrencyDefault = 2;

/** Opens one queue for a worker. The worker adds jobs in its sweep and handles the jobs that are delivered. */
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
        // The sweep puts few jobs into the queue at a time, so the queue is refilled when a job is taken. Several jobs
        // that are taken at the same time cause one refill.
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
