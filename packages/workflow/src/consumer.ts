import { trace } from '@opentelemetry/api';
import { createPostgresBackend, type Job, Worker } from 'bullmq';
import { doorbellSchema, nobody } from './doorbell';
import type { RunEnd } from './execution';
import { PatientPool } from './patient-pool';
import { isPostgresQueue, postgresConnection, type QueueAddress, queuePrefix } from './queue';
import { queueTelemetry } from './queue-telemetry';
import { messageOf } from './step-error';
import { markFailed } from './trace';

export interface ConsumerOptions extends QueueAddress {
  /** Workflows that this process carries at once. */
  concurrency: number;
  answer(workflowId: string): Promise<RunEnd>;
  /** A job of any kind was delivered: the queue works. */
  delivered(): void;
}

export interface Consumer {
  /** Takes no more jobs and waits for those in hand. */
  close(): Promise<void>;
}

/** Each job is a doorbell: whoever rings, and however often, Postgres decides whether there is anything to do. No job ever fails, so BullMQ never decides. */
export function consume(options: ConsumerOptions): Consumer {
  const { queueUrl, queueName, log } = options;
  const common = {
    prefix: queuePrefix(queueName),
    telemetry: queueTelemetry(queueName),
    concurrency: options.concurrency,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
    // How long an idle worker blocks; a Redis that came back empty is noticed after it at the latest.
    drainDelay: 2,
    // After a refused connection; BullMQ's own is 15 s.
    runRetryDelay: 1_000,
  };
  const processor = (job: Job): Promise<void> => answerJob(options, job);
  // One connection of the pool listens.
  const pool = isPostgresQueue(queueUrl) ? new PatientPool(postgresConnection(queueUrl, 5)) : null;
  const worker =
    pool === null
      ? new Worker(queueName, processor, { ...common, connection: redisOptions(queueUrl) })
      : new Worker(queueName, processor, { ...common, connection: pool.forBullmq() }, createPostgresBackend);
  worker.on('error', (error) => log.warn({ internal: messageOf(error) }, 'consumer'));
  return {
    close: async () => {
      pool?.loseHope();
      await worker.close();
      await pool?.end();
    },
  };
}

async function answerJob(options: ConsumerOptions, job: Job): Promise<void> {
  options.delivered();
  const span = trace.getActiveSpan();
  span?.setAttributes({
    'messaging.system': 'bullmq',
    'messaging.destination.name': options.queueName,
    'messaging.operation.type': 'process',
    'messaging.operation.name': 'process',
    'messaging.message.id': job.id ?? '',
  });
  const bell = doorbellSchema.safeParse(job.data);
  if (!bell.success) {
    options.log.warn({ job_id: String(job.id).slice(0, 100) }, 'a job that is no doorbell was ignored');
    return;
  }
  if (bell.data.workflowId === nobody) return;
  try {
    const end = await options.answer(bell.data.workflowId);
    if (span !== undefined && unhappy.has(end)) markFailed(span, end);
  } catch (error) {
    if (span !== undefined) markFailed(span, error instanceof Error ? error.name : 'unknown');
    options.log.warn({ workflow_id: bell.data.workflowId, internal: messageOf(error) }, 'a ring could not be answered');
  }
}

const unhappy: ReadonlySet<RunEnd> = new Set<RunEnd>(['failed', 'needs_attention', 'left']);

/** BullMQ makes its own clients here, one of which blocks; they wait and reconnect for as long as it takes. */
function redisOptions(queueUrl: string) {
  const url = new URL(queueUrl);
  return {
    host: url.hostname,
    port: Number(url.port || 6379),
    db: Number(url.pathname.slice(1) || 0),
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
    maxRetriesPerRequest: null,
    retryStrategy: (times: number) => Math.min(1_000, 50 * times),
  };
}
