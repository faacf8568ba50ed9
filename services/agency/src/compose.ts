import { auditOutbox, createIdempotencyPurge, createOutboxDelivery } from '@drydock/service/effects';
import { type ApiProcess, composeApiProcess, createPager } from '@drydock/service/http';
import { deriveKeys, layFoundation } from '@drydock/service/process';
import type { ServerConfig } from './config';
import { openDatabase } from './context/database.store';
import { routes } from './routes';

const serviceName = 'agency';

/**
 * Composes the only process of this service. The service needs no worker, because all work ends within its request. The
 * process also delivers the audit entries.
 */
export function composeApi(config: ServerConfig): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, database } = foundation;
  const delivery = createOutboxDelivery({
    outbox: auditOutbox,
    database,
    keysUrl: config.KEYS_URL,
    secret: config.AUDIT_TOKEN_SECRET,
    service: serviceName,
    log,
    // Each change starts a delivery at once (`changed`). The interval is for entries of a process that stopped before
    // it delivered them.
    everyMs: 5_000,
  });
  return composeApiProcess(foundation, config, {
    name: serviceName,
    routes: routes({ database, pager: createPager(deriveKeys(config.SERVICE_SECRET, 'cursor')) }),
    changed: () => delivery.ring(),
    beside: { 'idempotency purge': createIdempotencyPurge(database, log), 'audit delivery': delivery },
  });
}
