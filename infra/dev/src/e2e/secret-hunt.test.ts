/**
 * Uses operations of a whole stack that handle secrets. Then looks for these secrets in everything that the stack has
 * written. In `npm run test:all` whole-stack.test.ts runs this suite.
 *
 * @tier chaos
 * @processes
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { managedDatabaseSchema } from '@drydock/contracts/databases/databases';
import { siteBackupSurfaceSchema } from '@drydock/contracts/hosting/backups';
import { mintedApiKeySchema } from '@drydock/contracts/keys/api-keys';
import { isChaos, queueBackends } from '@drydock/testing/scope';
import type { TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import type { Collector } from './collector';
import { Customer } from './customer';
import { startCollector, startStack } from './one-stack';
import { huntSecrets, type KnownSecret, knownSecrets, placesOf } from './secret-hunt';

/** The chaos run uses every backend, with the whole demo. Other runs use one backend, with a demo of keys and sites. */
const backends = isChaos ? queueBackends() : queueBackends().slice(0, 1);

describe.each(backends)('after every operation has been used, queue on %s', (queueBackend) => {
  let collector: Collector;
  let stack: TestStack;
  let customer: Customer;
  const shownOnce: KnownSecret[] = [];
  const answers: string[] = [];
  jest.setTimeout(900_000);

  beforeAll(async () => {
    collector = await startCollector();
    // With TRACE_READS and TRACE_DETAIL all spans are sent, including those that are left out by default.
    const environment = { DRYDOCK_DEMO: isChaos ? 'whole' : 'sites', TRACE_READS: '1', TRACE_DETAIL: 'full' };
    stack = await startStack({ queueBackend, otlpEndpoint: collector.url, environment });
    customer = new Customer(stack.demo.base_url, stack.demo.live_key);
  });
  afterAll(async () => {
    await stack?.stop();
    collector.close();
  });

  const succeeds = async (method: string, path: string, body?: unknown): Promise<void> =>
    expect((await customer.carryOut(method, path, body)).status).toBe('succeeded');

  const useKeys = async (): Promise<void> => {
    const mint = await customer.call(
      'POST',
      '/v1/api-keys',
      { name: 'hunted', scopes: ['sites.view'] },
      { 'idempotency-key': randomUUID() },
    );
    const minted = mintedApiKeySchema.parse(mint.body);
    const rotated = await customer.call('POST', `/v1/api-keys/${minted.id}/rotate`, { grace_seconds: 0 });
    for (const answer of [mint, rotated])
      shownOnce.push({ name: 'a minted key', value: mintedApiKeySchema.parse(answer.body).token });
    await customer.call('DELETE', `/v1/api-keys/${mintedApiKeySchema.parse(rotated.body).id}`);
    answers.push((await customer.call('GET', '/v1/api-keys')).text, (await customer.call('GET', '/v1/audit-log')).text);
  };

  const useSites = async (): Promise<void> => {
    const [site] = stack.demo.sites;
    const backupId = await customer.takeBackup(site?.id ?? '');
    await succeeds('POST', `/v1/sites/${site?.id}/backups/restore`, { backup_id: backupId });
    const secret = randomBytes(30).toString('base64url');
    shownOnce.push({ name: 'a customer’s storage secret', value: secret });
    const storage = {
      endpoint: 'https://storage.example.com',
      region: 'eu',
      bucket: 'b',
      prefix: 'p',
      access_key_id: 'id',
    };
    answers.push(
      (await customer.call('PUT', `/v1/sites/${site?.id}/offsite`, { ...storage, secret_access_key: secret })).text,
    );
    const surface = await customer.call('GET', `/v1/sites/${site?.id}/backups`);
    siteBackupSurfaceSchema.parse(surface.body);
    answers.push(surface.text, (await customer.call('GET', '/v1/sites')).text);
    const made = await customer.call('POST', '/v1/sites', {
      name: 'Hunted',
      primary_domain: `hunted-${randomUUID()}.example.com`,
      platform: 'local',
      plan: { daily_backups: true, backup_retention_days: 7 },
    });
    expect((await customer.follow(made.headers.get('location') ?? '')).status).toBe('succeeded');
    await succeeds('DELETE', `/v1/sites/${z.object({ id: z.string() }).parse(made.body).id}`);
  };

  const useDatabases = async (): Promise<void> => {
    const made = await customer.call('POST', '/v1/databases', {
      label: 'Hunted',
      engine: 'postgres',
      engine_version: '16',
      size: 'small',
    });
    const { id, password } = z.object({ id: z.string(), password: z.string() }).parse(made.body);
    shownOnce.push({ name: 'a database’s password', value: password });
    const database = async () =>
      managedDatabaseSchema.parse((await customer.insist('GET', `/v1/databases/${id}`)).body);
    const untilAvailable = (what: string) =>
      until(async () => (await database()).status === 'available', { timeoutMs: 180_000, what });
    await untilAvailable('the database');
    await succeeds('POST', `/v1/databases/${id}/backups`, {});
    await succeeds('POST', `/v1/databases/${id}/upgrade`, { engine_version: '17' });
    answers.push((await customer.call('GET', `/v1/databases/${id}`)).text);
    await succeeds('DELETE', `/v1/databases/${id}`);
  };

  const useWebhooks = async (): Promise<void> => {
    const made = await customer.call(
      'POST',
      '/v1/webhooks',
      { url: 'https://hooks.example.com/drydock' },
      { 'idempotency-key': randomUUID() },
    );
    const shown = z.object({ id: z.string(), secret: z.string() });
    const { id } = shown.parse(made.body);
    const rotated = await customer.call('POST', `/v1/webhooks/${id}/rotate-secret`, {});
    for (const answer of [made, rotated]) {
      const bytes = shown.parse(answer.body).secret.replace('whsec_', '');
      shownOnce.push(
        { name: 'a webhook’s secret', value: bytes },
        { name: 'a webhook’s secret', value: Buffer.from(bytes, 'base64').toString('hex') },
      );
    }
    await customer.call('POST', `/v1/webhooks/${id}/test`);
    for (const path of ['/v1/webhooks', `/v1/webhooks/${id}/deliveries`, '/v1/events'])
      answers.push((await customer.call('GET', path)).text);
  };

  const useBadly = async (): Promise<void> => {
    for (const token of [stack.demo.live_key, stack.demo.staff_key])
      await fetch(`${stack.demo.base_url}/v1/sites?access_token=${token}`, {
        headers: { 'x-api-key': token, authorization: `Basic ${token}` },
      });
    await fetch(`${stack.demo.base_url}/v1/sites/${stack.demo.live_key}`, {
      headers: { authorization: `Bearer ${stack.demo.live_key}` },
    });
  };

  test('no secret is in spans, metrics, logs, the queue, tables, answers or what is seen of processes', async () => {
    await Promise.all([useKeys(), useSites(), useDatabases(), useWebhooks(), useBadly()]);
    // Processes send spans every 200 ms and metrics every 15 s.
    await until(() => collector.paths.has('/v1/metrics'), { timeoutMs: 60_000, what: 'metrics' });
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const secrets = await knownSecrets(stack, shownOnce);
    expect(secrets.length).toBeGreaterThan(40);
    const places = [
      ...(await placesOf(stack)),
      { name: 'telemetry', text: collector.raw() },
      { name: 'answers', text: answers.join('\n') },
    ];
    expect(places.length).toBeGreaterThan(60);
    expect(collector.raw()).toContain('db.query.text');
    expect(huntSecrets(places, secrets)).toEqual([]);
  });
});
