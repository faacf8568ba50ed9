import { createLog, type Log } from '@drydock/service-kit/log';
import { createPager } from '@drydock/service-kit/paging';
import { deriveKey } from '@drydock/service-kit/secrets';
import { createService, type Service } from '@drydock/service-kit/service';
import { createLifetime, type Lifetime } from '@drydock/service-kit/shutdown';
import { createKeySecrets } from './api-keys/api-key.secret';
import { takeDelivery } from './audit/take-delivery';
import type { ServerConfig } from './config';
import { openDatabase } from './database.store';
import { createHousekeeping } from './housekeeping';
import { routes } from './routes';
import { createLastUses } from './verify/last-uses';
import { verifyRoute } from './verify/verify-token';

/** A gateway trusts a verification for 1 s from asking; the tenth is for the answer's way. */
const revocationWaitMs = 1_100;

export interface KeysProcess {
  log: Log;
  lifetime: Lifetime;
  service: Service;
  start(): Promise<{ url: string; port: number }>;
}

export function composeApi(config: ServerConfig): KeysProcess {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const database = openDatabase(config.DATABASE_URL, { max: 10, applicationName: config.SERVICE_NAME });
  lifetime.onClose('database', () => database.close());
  const secrets = createKeySecrets(config.SERVICE_SECRET, config.TOKEN_PEPPERS);
  const lastUses = createLastUses(database.sql(), log);
  lifetime.onClose('last uses', () => lastUses.stop());
  const housekeeping = createHousekeeping(database, log);
  lifetime.onClose('housekeeping', () => housekeeping.stop());
  const service = createService({
    name: 'keys',
    routes: routes({ database, secrets, pager: createPager(deriveKey(config.SERVICE_SECRET, 'cursor')), revocationWaitMs }),
    internalRoutes: [
      verifyRoute({ database, secrets, lastUses }, config.INTERNAL_TOKEN_SECRET),
      takeDelivery(database, config.AUDIT_TOKEN_SECRETS),
    ],
    database,
    tokenSecret: config.INTERNAL_TOKEN_SECRET,
    log,
    ready: { database: () => database.sql().query('SELECT 1') },
  });
  lifetime.onClose('http', () => service.close(), 15_000);
  return {
    log,
    lifetime,
    service,
    start: () => {
      lastUses.start();
      housekeeping.start();
      return service.listen(config.PORT, config.HOST);
    },
  };
}
