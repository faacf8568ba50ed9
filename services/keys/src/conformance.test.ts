import { conformanceChecks, conformanceLimitMs } from '@drydock/service/testing/conformance';
import type { ConformanceWorld } from '@drydock/service/testing/conformance-rule';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { type KeysApi, startKeys, streams } from '../test/keys-api';

let api: KeysApi;
let world: ConformanceWorld;
beforeAll(async () => {
  // The lifetime of a stream is short, because each check waits for the end of an answer.
  streams.lifetimeMs = 1_000;
  api = await startKeys();
  const [{ caller: owner }, { caller: stranger }] = [await api.bootstrap(), await api.bootstrap({ newKey: true })];
  world = {
    call: (method, path, options) => api.call(options.caller, method, path, options),
    owner,
    // A caller of the other mode is no stranger, because live keys also manage sandbox keys, and both modes share the
    // organisations.
    strangers: [stranger],
    newOwner: async () => (await api.bootstrap()).caller,
    makeThings: async (caller) => {
      // No check calls with this key, because the first use of a key changes what the API shows of the key.
      const minted = await api.call(caller, 'POST', '/v1/api-keys', { body: { name: 'a key' } });
      const { id: keyId } = z.object({ id: z.string() }).parse(minted.json);
      const { id: orgId } = await api.createOrg(caller, { name: 'Reseller', permissions: ['apikeys.manage'] });
      // Removes the oldest webhooks, because an organisation may have only twenty and each check creates new ones.
      const older = 'SELECT id FROM webhooks WHERE org_id = $1 ORDER BY id DESC OFFSET 16';
      await api.rows(`DELETE FROM webhooks WHERE id IN (${older})`, [caller.orgId]);
      const url = 'https://hooks.example.com/drydock';
      const created = await api.call(caller, 'POST', '/v1/webhooks', { body: { url } });
      const { id: webhookId } = z.object({ id: z.string() }).parse(created.json);
      const [event] = await api.rows<{ id: string; delivery_id: string }>(
        `WITH event AS (UPDATE events SET seq = nextval('event_seq') WHERE org_id = $1 AND resource = '/v1/webhooks/' || $2 RETURNING *)
         INSERT INTO webhook_deliveries (id, webhook_id, org_id, event_id, event_seq, resource, due_at, created_at)
         SELECT id, $2::uuid, org_id, id, seq, resource, 'infinity', now() FROM event
         ON CONFLICT (event_id, webhook_id) DO UPDATE SET resource = excluded.resource RETURNING event_id AS id, id AS delivery_id`,
        [caller.orgId, webhookId],
      );
      const { id: eventId = '', delivery_id: deliveryId = '' } = event ?? {};
      const workflowId = uuidv7();
      await api.rows(
        `INSERT INTO workflows (id, org_id, mode, kind, status, resource, updated_at)
         VALUES ($1::uuid, $2::uuid, 'live', CASE WHEN random() < 0.5 THEN 'upgrade' ELSE 'create_site' END, CASE WHEN random() < 0.5 THEN 'failed' ELSE 'unfinished' END,
           '/v1/sites/' || $1::uuid, now())`,
        [workflowId, caller.orgId],
      );
      return { params: { keyId, orgId, eventId, webhookId, deliveryId, workflowId } };
    },
    cannotSucceed: {},
    // These operations answer late: a change that may remove a right waits until every gateway knows the change, and a
    // stream of events lasts for its whole lifetime.
    waiting: ['updateApiKey', 'revokeApiKey', 'updateOrg', 'rotateApiKey', 'watchEvents'],
  };
});
afterAll(() => api.close());

describe('every operation of keys', () => {
  // Each check contains its own expectations.
  // oxlint-disable-next-line jest/expect-expect
  it.each(conformanceChecks('keys').map((check) => [check.name, check] as const))(
    '%s',
    (_name, check) => check.run(world),
    conformanceLimitMs,
  );
});
