import type { Database } from '@drydock/service/database/sql';
import { createAuditDelivery } from '@drydock/service/effects/audit-delivery';
import type { QueueConfig, ServiceConfig } from '@drydock/service/process/config-fields';
import { databaseReady, type Foundation } from '@drydock/service/process/foundation';
import { createHealthServer } from '@drydock/service/process/health-server';
import type { Process } from '@drydock/service/process/run-process';
import { createEngine, type Engine, type EngineOptions } from '../runner/engine';
import { createListener } from '../store/listener';
import { createWorkflowPurge } from '../store/purge-workflows';

type WorkerConfig = QueueConfig & { WORKFLOW_CONCURRENCY: number } & Pick<
    ServiceConfig,
    'HOST' | 'PORT' | 'DATABASE_URL' | 'KEYS_URL' | 'AUDIT_TOKEN_SECRET'
  >;

export interface WorkerOptions<Context, Tx> {
  /** The service's: of its queue, and its issuer's towards keys. */
  name: string;
  workflows: EngineOptions<Context, Tx>['definitions'];
  /** What every step of them is given: here are the drivers. */
  context: Context;
  /** Writes down what the clock starts, before the engine looks for it. */
  schedule?(): unknown;
}

/** Long enough for running steps to stop at a safe place and to be handed back. */
const engineCloseMs = 15_000;

/** The process that works, delivers the audit entries of its whole service and forgets its old workflows. What the steps use has been opened before, and is closed after it. */
export function composeWorkerProcess<Context, Tx>(
  foundation: Foundation<Database<Tx>>,
  config: WorkerConfig,
  { name, workflows, context, schedule }: WorkerOptions<Context, Tx>,
): Process {
  const { log, lifetime, database } = foundation;
  const delivery = createAuditDelivery({ database, keysUrl: config.KEYS_URL, secret: config.AUDIT_TOKEN_SECRET, service: name, log });
  const engine = openEngine(foundation, config, { name, workflows, context });
  const purge = createWorkflowPurge(database, log);
  const ready = { ...databaseReady(database), queue: () => engine.checkQueue() };
  const health = createHealthServer({ log, ready });
  lifetime.onClose('http', () => health.close());
  return {
    log,
    lifetime,
    start: async () => {
      delivery.start();
      lifetime.onClose('audit delivery', () => delivery.stop());
      purge.start();
      lifetime.onClose('workflow purge', () => purge.stop());
      await schedule?.();
      engine.start();
      lifetime.onClose('engine', () => engine.stop(), engineCloseMs);
      return health.listen(config.PORT, config.HOST);
    },
  };
}

function openEngine<Context, Tx>(
  { log, lifetime, database }: Foundation<Database<Tx>>,
  config: WorkerConfig,
  { name, workflows, context }: WorkerOptions<Context, Tx>,
): Engine {
  const listener = createListener({ connectionString: config.DATABASE_URL, log });
  lifetime.onClose('listener', () => listener.close());
  return createEngine({
    database,
    definitions: workflows,
    context,
    queueUrl: config.QUEUE_URL,
    queueName: name,
    leaseSeconds: config.WORKFLOW_LEASE_SECONDS,
    sweepMs: config.WORKFLOW_SWEEP_MS,
    concurrency: config.WORKFLOW_CONCURRENCY,
    log,
    listener,
  });
}
