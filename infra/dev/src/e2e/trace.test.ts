/**
 * Checks the traces and metrics that a whole stack sends, and promises that need the gateway and keys together. In `npm
 * run test:all` whole-stack.test.ts runs this suite on a stack that several suites share.
 *
 * @tier chaos
 * @processes
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { siteBackupSurfaceSchema } from '@drydock/contracts/hosting/backups';
import { mintedApiKeySchema } from '@drydock/contracts/keys/api-keys';
import type { TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import type { Span } from '../traces/otlp';
import type { Collector } from './collector';
import { Customer } from './customer';
import { startCollector, startStack } from './one-stack';

describe('a request through every process', () => {
  let collector: Collector;
  let stack: TestStack;
  let customer: Customer;
  jest.setTimeout(900_000);

  beforeAll(async () => {
    collector = await startCollector();
    stack = await startStack({ otlpEndpoint: collector.url, environment: { DRYDOCK_DEMO: 'sites' } });
    customer = new Customer(stack.demo.base_url, stack.demo.live_key);
  });
  afterAll(async () => {
    await stack?.stop();
    collector.close();
  });

  /** Returns the processes on the way from the root of the trace down to `span`. */
  const wayTo = (span: Span | undefined): string[] => {
    if (span === undefined) return [];
    const way = wayTo(
      collector.spans.find(({ traceId, spanId }) => traceId === span.traceId && spanId === span.parentSpanId),
    );
    return way.at(-1) === span.service ? way : [...way, span.service];
  };

  test('a restore is one trace, from the gateway through service, queue and worker to the site host', async () => {
    const siteId = stack.demo.sites[0]?.id ?? '';
    const surface = siteBackupSurfaceSchema.parse((await customer.call('GET', `/v1/sites/${siteId}/backups`)).body);
    const accepted = await customer.call(
      'POST',
      `/v1/sites/${siteId}/backups/restore`,
      { backup_id: surface.backups[0]?.id },
      {
        'idempotency-key': 'trace-secret-idempotency-key',
      },
    );
    const workflow = await customer.follow(accepted.headers.get('location') ?? '');
    expect(workflow.status).toBe('succeeded');
    const trace = (): Span[] => collector.spans.filter(({ traceId }) => traceId === workflow.trace_id);
    await until(
      () =>
        workflow.steps.every(({ name }) =>
          trace().some((span) => span.service === 'hosting-worker' && span.name.includes(name)),
        ),
      {
        timeoutMs: 60_000,
        what: 'a span for each step',
      },
    );
    const served = await until(() => trace().find((span) => span.service === 'site-host' && wayTo(span).length >= 4), {
      timeoutMs: 60_000,
    });
    expect(wayTo(served)).toEqual(['gateway', 'hosting', 'hosting-worker', 'site-host']);
    expect(accepted.headers.get('traceparent')).toContain(workflow.trace_id);
    for (const secret of [stack.demo.live_key, 'trace-secret-idempotency-key'])
      expect(collector.raw()).not.toContain(secret);
  });

  test('every metric that a rule or a dashboard names is told', async () => {
    const folder = path.resolve(__dirname, '../../../observability');
    const files = ['rules.yml', ...readdirSync(path.join(folder, 'grafana')).map((name) => `grafana/${name}`)];
    const text = files.map((name) => readFileSync(path.join(folder, name), 'utf8')).join('\n');
    const named = new Set([...text.matchAll(/(?<![\w:])([a-z][a-z0-9_]+)(?=\{)/g)].map(([, name]) => name ?? ''));
    named.delete('up');
    expect(named.size).toBeGreaterThan(15);
    const missing = (): string[] => [...named].filter((name) => !collector.metrics.has(name));
    await until(() => missing().length === 0, { timeoutMs: 40_000, what: 'all metrics' }).catch(() => undefined);
    expect(missing()).toEqual([]);
  });

  test('of 100 requests begun after a revocation was answered none succeeds', async () => {
    const minted = mintedApiKeySchema.parse(
      (await customer.call('POST', '/v1/api-keys', { name: 'soon revoked', scopes: ['sites.view'] })).body,
    );
    const other = new Customer(stack.demo.base_url, minted.token);
    expect((await other.call('GET', '/v1/sites')).status).toBe(200);
    expect((await customer.call('DELETE', `/v1/api-keys/${minted.id}`)).status).toBe(204);
    const answers = await Promise.all(Array.from({ length: 100 }, () => other.call('GET', '/v1/sites')));
    expect(answers.filter(({ status }) => status !== 401)).toEqual([]);
  });

  test('a mint that is sent again answers the same token, byte for byte', async () => {
    const mint = () =>
      customer.call(
        'POST',
        '/v1/api-keys',
        { name: 'once', scopes: ['sites.view'] },
        { 'idempotency-key': 'mint-once-0001' },
      );
    const [first, again] = [await mint(), await mint()];
    expect(again.text).toBe(first.text);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  test('another organisation and the other mode find the same nothing', async () => {
    const siteId = stack.demo.sites[0]?.id ?? '';
    const nothing = { status: 404, body: { code: 'site_not_found' } };
    for (const key of [stack.demo.other_org_key, stack.demo.sandbox_key]) {
      const stranger = new Customer(stack.demo.base_url, key);
      expect(await stranger.call('GET', `/v1/sites/${siteId}`)).toMatchObject(nothing);
      expect(await stranger.call('POST', `/v1/sites/${siteId}/backups/restore`, { backup_id: siteId })).toMatchObject(
        nothing,
      );
    }
  });
});
