import type { WebhookWithSecret } from '@drydock/contracts/keys/webhooks';
import { until } from '@drydock/testing/wait';
import { Webhook } from 'standardwebhooks';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';
import { type KeysDatabase, openDatabase } from '../context/database.store';
import { createWebhookSecrets } from '../secrets/webhook.secret';
import { type Claimed, claimDeliveries } from './delivery.store';

let api: KeysApi;
let root: GoodKey;
let database: KeysDatabase;
/** The secrets of the test's webhook, oldest first. */
let secrets: string[];
let webhook: WebhookWithSecret;
beforeAll(async () => {
  api = await startKeys();
  database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
});
beforeEach(async () => {
  root = await api.bootstrap();
  const body = { url: 'https://hooks.example.com/rotated', event_types: ['org.update'] };
  webhook = (await api.call(root.caller, 'POST', '/v1/webhooks', { body })).json as WebhookWithSecret;
  secrets = [webhook.secret];
});
afterAll(async () => {
  await database.close();
  await api.close();
});

const rotate = async (grace: number): Promise<void> => {
  const body = { grace_seconds: grace };
  const answer = await api.call(root.caller, 'POST', `/v1/webhooks/${webhook.id}/rotate-secret`, { body });
  expect(answer.status).toBe(200);
  secrets.push((answer.json as WebhookWithSecret).secret);
};
const change = (text: string) => api.rows(`UPDATE webhooks SET ${text} WHERE id = $1`, [webhook.id]);
/** The hours until the end of the grace time. */
const graceLeft = async (): Promise<number> => {
  const [row] = await api.rows(
    'SELECT (extract(epoch FROM previous_until - now()) / 3600)::float8 AS hours FROM webhooks WHERE id = $1',
    [webhook.id],
  );
  return Number(row?.['hours']);
};

/** Signs a message as the sender does, and returns the indices of the secrets that it verifies with. */
const signing = async (): Promise<number[]> => {
  expect((await api.call(root.caller, 'POST', `/v1/webhooks/${webhook.id}/test`)).status).toBe(200);
  let claimed: Claimed | undefined;
  await until(async () => {
    const limits = { most: 1, mostOfOrg: 1, sending: {}, leaseSeconds: 60, afterOrg: root.caller.orgId };
    [claimed] = await claimDeliveries(database.sql(), limits);
    return claimed !== undefined;
  });
  if (claimed === undefined) throw new Error('nothing was claimed');
  await database
    .sql()
    .query(`UPDATE webhook_deliveries SET status = 'delivered' WHERE id = $1 RETURNING id`, [claimed.id]);
  const message = { id: claimed.event.id, at: new Date(), body: '{}' };
  const headers = createWebhookSecrets(api.secrets.webhook).sign(message, claimed);
  return secrets.flatMap((secret, index) => {
    try {
      new Webhook(secret).verify(message.body, headers);
      return [index];
    } catch {
      return [];
    }
  });
};

test('a secret signs until the end of its grace time, also when the next rotation comes before that', async () => {
  await rotate(3_600);
  expect(await signing()).toEqual([0, 1]);
  await rotate(3_600);
  expect(await signing()).toEqual([0, 1, 2]);
  // A shorter grace time takes nothing from the secrets that were promised a longer one.
  await rotate(60);
  expect(await graceLeft()).toBeGreaterThan(0.5);
  expect(await signing()).toEqual([0, 1, 2, 3]);
  await change(`previous_until = now() - interval '1 second'`);
  expect(await signing()).toEqual([3]);
  await rotate(3_600);
  expect(await signing()).toEqual([3, 4]);
  await rotate(0);
  expect(await signing()).toEqual([5]);
});

test('at most ten secrets sign, the newest ones', async () => {
  for (let count = 0; count < 11; count += 1) await rotate(3_600);
  expect(await signing()).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

test('after a rotation by the release before, the two newest secrets sign', async () => {
  await change(`generation = 3, previous_until = now() + interval '1 hour', oldest_generation = NULL`);
  secrets = [1, 2, 3].map((generation) => createWebhookSecrets(api.secrets.webhook).of(webhook.id, generation));
  expect(await signing()).toEqual([1, 2]);
  await rotate(60);
  expect(await signing()).toEqual([1, 2, 3]);
});
