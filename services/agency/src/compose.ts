import { createAuditDelivery } from '@drydock/service-kit/audit-delivery';
import { createIdempotencyPurge } from '@drydock/service-kit/idempotency-purge';
import { createLog, type Log } from '@drydock/service-kit/log';
import { createPager } from '@drydock/service-kit/paging';
import { deriveKey } from '@drydock/service-kit/secrets';
import { createService, type Service } from '@drydock/service-kit/service';
import { createLifetime, type Lifetime } from '@drydock/service-kit/shutdown';
import type { ServerConfig } from './config';
import { openDatabase } from './database.store';
import { routes } from './routes';

const serviceName = 'agency';

export interface AgencyProcess {
  log: Log;
  lifetime: Lifetime;
  service: Service;
  /** Where it listens. */
  start(): Promise<{ url: string; port: number }>;
}

/** The only process of this service: nothing here takes longer than its request, so there is no worker; it delivers its audit entries itself. */
export function composeApi(config: ServerConfig): AgencyProcess {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const database = openDatabase(config.DATABASE_URL, { max: 10, applicationName: config.SERVICE_NAME });
  lifetime.onClose('database', () => database.close());
  const service = createService({
    name: serviceName,
    routes: routes({ database, pager: createPager(deriveKey(config.SERVICE_SECRET, 'cursor')) }),
    database,
    tokenSecret: config.INTERNAL_TOKEN_SECRET,
    log,
    ready: { database: () => database.sql().query('SELECT 1') },
  });
  lifetime.onClose('http', () => service.close(), 15_000);
  const purge = createIdempotencyPurge(database, log);
  lifetime.onClose('idempotency purge', async () => purge.stop());
  const delivery = createAuditDelivery({
    database,
    keysUrl: config.KEYS_URL,
    secret: config.AUDIT_TOKEN_SECRET,
    service: serviceName,
    log,
  });
  lifetime.onClose('audit delivery', () => delivery.stop());
  return {
    log,
    lifetime,
    service,
    start: () => {
      purge.start();
      delivery.start();
      return service.listen(config.PORT, config.HOST);
    },
  };
}
