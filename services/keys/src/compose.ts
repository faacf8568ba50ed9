import { createPager } from '@drydock/service/http/paging';
import { type ApiProcess, composeApiProcess } from '@drydock/service/process/api-process';
import { layFoundation } from '@drydock/service/process/foundation';
import { deriveKey } from '@drydock/service/process/secrets';
import { createKeySecrets } from './api-keys/api-key.secret';
import { takeDelivery } from './audit/take-delivery';
import type { ServerConfig } from './config';
import { openDatabase } from './database.store';
import { createHousekeeping } from './housekeeping';
import { routes } from './routes';
import { waitForGateways } from './seen-everywhere';
import { createLastUses } from './verify/last-uses';
import { verifyRoute } from './verify/verify-token';

export function composeApi(config: ServerConfig, gatewaysHave = waitForGateways): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const secrets = createKeySecrets(config.SERVICE_SECRET, config.TOKEN_PEPPERS);
  const lastUses = createLastUses(database.sql(), log);
  lifetime.onClose('last uses', () => lastUses.stop());
  const housekeeping = createHousekeeping(database, log);
  lifetime.onClose('housekeeping', () => housekeeping.stop());
  const api = composeApiProcess(foundation, config, {
    name: 'keys',
    routes: routes({ database, secrets, pager: createPager(deriveKey(config.SERVICE_SECRET, 'cursor')), gatewaysHave }),
    internalRoutes: [
      verifyRoute({ database, secrets, lastUses }, config.INTERNAL_TOKEN_SECRET),
      takeDelivery(database, config.AUDIT_TOKEN_SECRETS),
    ],
  });
  return {
    ...api,
    start: () => {
      lastUses.start();
      housekeeping.start();
      return api.start();
    },
  };
}
