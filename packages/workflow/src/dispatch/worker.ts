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
  keptJobs,
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
  /** Jobs that are handled at once. */
  concurrency: number;
  handle(job: WorkflowJob): Promise<RunEnd>;
  /** A job of any kind was delivered: the queue works. */
  delivered(): void;
}

interface JobWorker {
  /** Takes no more jobs and waits for the running ones. */
  close(): Promise<void>;
}

/**
 * A job only says where to look: however often it comes, Postgres decides whether there is anything to do. No job ever
 * fails, so BullMQ never retries.
 */
export function openWorker(options: JobWorkerOptions): JobWorker {
  const { queueUrl, queueName, log } = options;
  const common = {
    prefix: queuePrefix(queueName),
    telemetry: queueTelemetry(queueName),
    concurrency: options.concurrency,
    removeOnComplete: keptJobs,
    removeOnFail: keptJobs,
    // The pause after a refused connection; BullMQ's own is 15 s.
    runRetryDelay: 1_000,
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
  // One connection of the pool listens.
  const pool = new PatientPool(postgresConnection(queueUrl, 5));
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

/** BullMQ duplicates our client for blocking calls; both wait and reconnect for as long as it takes. */
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

/** The callback's type in pg's own declaration. */
type ConnectCallback = Parameters<Pool['connect']>[0];

const pauseMs = 500;

/**
 * A pool that waits for its database instead of giving up. BullMQ keeps the failure of a first connection for ever, and
 * after a later one asks again at once: a worker that starts while Postgres is away would spin until a restart. Each
 * failure is an `error` event.
 */
class PatientPool extends Pool {
  private isPatient = true;

  constructor(config: PoolConfig) {
    // The same option that BullMQ gives to its own pools.
    super({ ...config, options: '-c search_path=bullmq' });
  }

  /** BullMQ's own type of a pool; only the overloads of `on` in pg's declarations do not fit it. */
  forBullmq(): PgPool {
    return this as unknown as PgPool;
  }

  /** Called before the pool is closed: from now on a failed connection is an error. */
  stopRetrying(): void {
    this.isPatient = false;
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
        if (!this.isPatient || this.ending) throw error;
        this.emit('error', error);
      }
      await wait(pauseMs);
    }
  }
}

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

/** Requests wait until an interactive workflow has begun, which takes little time. */
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
