import {
  type ApiProcess,
  composeApiProcess,
  createHealthServer,
  createPager,
  type StreamLimits,
} from '@drydock/service/http';
import { databaseReady, deriveKeys, layFoundation, type Process } from '@drydock/service/process';
import { takeDeliveries } from './audit/audit-log';
import type { ServerConfig, WorkerConfig } from './config';
import { waitForGateways } from './context/context';
import { openDatabase } from './context/database.store';
import { createSequencer } from './events/sequencer';
import { createHousekeeping } from './housekeeping';
import { routes } from './routes';
import { createKeySecrets } from './secrets/api-key.secret';
import { createWebhookSecrets } from './secrets/webhook.secret';
import { createLastUses, verifyRoute } from './verify/verify-token';
import { createWebhookSender } from './webhooks/sender';

const receiversIn = ({
  DRYDOCK_WEBHOOK_ALLOW: list = '',
}: Pick<WorkerConfig, 'DRYDOCK_WEBHOOK_ALLOW'>): ReadonlySet<string> =>
  new Set(list.split(',').filter((entry) => entry !== ''));

/** Parts that tests replace. */
export interface KeysOptions {
  streams?: Partial<StreamLimits>;
  gatewaysHave?: () => Promise<void>;
}

export function composeApi(
  config: ServerConfig,
  { gatewaysHave = waitForGateways, streams }: KeysOptions = {},
): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const secrets = createKeySecrets(config.SERVICE_SECRET, config.TOKEN_PEPPERS);
  const lastUses = createLastUses(database.sql(), log);
  lifetime.onClose('last uses', () => lastUses.stop());
  const sequencer = createSequencer(database, log);
  lifetime.onClose('sequencer', () => sequencer.stop());
  const housekeeping = createHousekeeping(database, log);
  lifetime.onClose('housekeeping', () => housekeeping.stop());
  const api = composeApiProcess(foundation, config, {
    name: 'keys',
    changed: () => sequencer.ring(),
    ...(streams === undefined ? {} : { streams }),
    routes: routes({
      database,
      secrets,
      sequencer,
      pager: createPager(deriveKeys(config.SERVICE_SECRET, 'cursor')),
      gatewaysHave,
      webhookSecrets: createWebhookSecrets(config.WEBHOOK_SECRET),
      webhooksAllowed: receiversIn(config),
    }),
    internalRoutes: [
      verifyRoute({ database, secrets, lastUses }, config.INTERNAL_TOKEN_SECRET),
      ...takeDeliveries(database, config.AUDIT_TOKEN_SECRETS, () => sequencer.ring()),
    ],
  });
  return {
    ...api,
    start: () => {
      lastUses.start();
      sequencer.start();
      housekeeping.start();
      return api.start();
    },
  };
}

/**
 * The process that sends webhooks. It is not the API's process, so that a slow receiver cannot delay the verification
 * of keys.
 */
export function composeWorker(config: WorkerConfig): Process {
  const { log, lifetime, database } = layFoundation(config, openDatabase);
  const sender = createWebhookSender({
    database,
    log,
    secrets: createWebhookSecrets(config.WEBHOOK_SECRET),
    allowed: receiversIn(config),
    leaseSeconds: config.WEBHOOK_LEASE_SECONDS,
  });
  const health = createHealthServer({ log, ready: databaseReady(database) });
  lifetime.onClose('http', () => health.close());
  lifetime.onClose('webhooks', () => sender.stop(), senderCloseMs);
  return {
    log,
    lifetime,
    start: () => {
      sender.start();
      return health.listen(config.PORT, config.HOST);
    },
  };
}

/** The time that the sender gets to close. It is longer than the longest attempt. */
const senderCloseMs = 16_000;
