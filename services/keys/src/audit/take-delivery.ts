import { auditDeliverySchema } from '@drydock/contracts/keys/audit-log';
import { problem } from '@drydock/contracts/platform/problem';
import { tokenKey } from '@drydock/service/access/internal-token';
import { auditDeliveryPath } from '@drydock/service/effects/audit-delivery';
import { internalRoute } from '@drydock/service/http/route';
import type { KeysDatabase } from '../database.store';
import { storeDelivery } from './audit.store';

/** Where the other services' outboxes deliver. Each signs with its own secret and may write entries of its own only. */
export const takeDelivery = (database: KeysDatabase, secrets: Readonly<Record<string, string>>) =>
  internalRoute({
    method: 'POST',
    path: auditDeliveryPath,
    issuers: Object.fromEntries(Object.entries(secrets).map(([service, secret]) => [service, tokenKey(secret)])),
    body: auditDeliverySchema,
    handle: async ({ body, issuer }) => {
      if (body.service !== issuer) throw problem('invalid_request', { internal: `${issuer} delivered entries of ${body.service}` });
      await database.transaction((tx) => storeDelivery(tx, issuer, body.entries));
      return { status: 204 };
    },
  });
