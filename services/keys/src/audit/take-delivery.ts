import { auditDeliverySchema, eventDeliverySchema } from '@drydock/contracts/keys/events';
import { problem } from '@drydock/contracts/platform/problem';
import { tokenKeys } from '@drydock/service/access';
import { type InternalRoute, internalRoute } from '@drydock/service/http';
import type { KeysDatabase } from '../context/database.store';
import { storeEvents } from '../events/event.store';
import { storeDelivery } from './audit.store';

/**
 * Takes the deliveries of the other services' outboxes. Each service signs with its own secret and may write only its
 * own entries.
 */
export function takeDeliveries(database: KeysDatabase, secrets: Readonly<Record<string, string>>): InternalRoute[] {
  const issuers = Object.fromEntries(Object.entries(secrets).map(([service, secret]) => [service, tokenKeys(secret)]));
  const assertOwn = (service: string, issuer: string): void => {
    if (service !== issuer) throw problem('invalid_request', { internal: `${issuer} delivered entries of ${service}` });
  };
  return [
    internalRoute({
      method: 'POST',
      path: '/internal/audit',
      issuers,
      body: auditDeliverySchema,
      handle: async ({ body, issuer }) => {
        assertOwn(body.service, issuer);
        await database.transaction((tx) => storeDelivery(tx, issuer, body.entries));
        return { status: 204 };
      },
    }),
    internalRoute({
      method: 'POST',
      path: '/internal/events',
      issuers,
      body: eventDeliverySchema,
      handle: async ({ body, issuer }) => {
        assertOwn(body.service, issuer);
        await database.transaction((tx) => storeEvents(tx, body.entries));
        return { status: 204 };
      },
    }),
  ];
}
