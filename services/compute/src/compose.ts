import { createIdempotencyPurge } from '@drydock/service/effects/idempotency-purge';
import { createPager } from '@drydock/service/http/paging';
import { type ApiProcess, composeApiProcess } from '@drydock/service/process/api-process';
import { layFoundation } from '@drydock/service/process/foundation';
import type { Process } from '@drydock/service/process/run-process';
import { deriveKeys } from '@drydock/service/process/secrets';
import { composeWorkerProcess } from '@drydock/workflow/http/worker-process';
import { connectWorkflows } from '@drydock/workflow/http/workflow-context';
import { openDrivers, openReaders } from './compose-targets';
import type { ServerConfig, WorkerConfig } from './config';
import { openDatabase } from './database.store';
import { routes } from './routes';
import { scheduleReconciliation } from './servers/schedule-reconciliation';
import { workflows } from './workflows';

/** Both processes' name for the queue and for the tokens of the gateway. */
const serviceName = 'compute';

/** The process that answers: it looks at the world through readers and writes to its own database only. */
export function composeApi(config: ServerConfig): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const connected = connectWorkflows(foundation, config, serviceName);
  const readers = openReaders({ live: config.COMPUTE_READER_TARGETS, sandbox: config.SANDBOX_COMPUTE_READER_TARGETS });
  lifetime.onClose('providers', () => readers.close());
  const context = {
    database,
    ...connected,
    pager: createPager(deriveKeys(config.SERVICE_SECRET, 'cursor')),
    targets: readers.targets,
  };
  return composeApiProcess(foundation, config, {
    name: serviceName,
    routes: routes(context),
    beside: { 'idempotency purge': createIdempotencyPurge(database, log) },
  });
}

/** The process that works: the only one with drivers. */
export function composeWorker(config: WorkerConfig): Process {
  const foundation = layFoundation(config, openDatabase);
  const { lifetime, database } = foundation;
  const drivers = openDrivers({ live: config.COMPUTE_TARGETS, sandbox: config.SANDBOX_COMPUTE_TARGETS });
  lifetime.onClose('providers', () => drivers.close());
  const { targets } = drivers;
  const context = {
    database,
    targets,
    guestSeconds: config.GUEST_SECONDS,
    slowMs: config.SANDBOX_SLOW_MS,
    now: () => new Date(),
  };
  return composeWorkerProcess(foundation, config, {
    name: serviceName,
    workflows,
    context,
    schedule: () => scheduleReconciliation(database, targets, config.RECONCILE_SECONDS),
  });
}
