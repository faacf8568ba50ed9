import { performance } from 'node:perf_hooks';
import { missingTools } from '@drydock/process/testing/needs';
import { type TestRedis, testRedis } from '@drydock/testing/redis';
import { until } from '@drydock/testing/wait';
import { type Bench, startBench, type TestKey } from '../test/fixture';

const get = (url: string, { token }: TestKey, method = 'GET', path = '/v1/sites') =>
  fetch(url + path, { method, headers: { authorization: `Bearer ${token}` } });

/** Sends `count` requests, at most 50 at a time, so that none is refused as `overloaded`. */
async function statusesOf(urls: readonly string[], key: TestKey, count: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let sent = 0; sent < count; sent += 50) {
    const portion = Array.from({ length: Math.min(50, count - sent) }, (_, index) =>
      get(urls[index % urls.length] ?? '', key),
    );
    statuses.push(...(await Promise.all(portion)).map(({ status }) => status));
  }
  return statuses;
}
const count = (statuses: readonly number[], wanted: number): number =>
  statuses.filter((status) => status === wanted).length;

describe('quotas without Redis', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await startBench({ config: { rateLimitScale: 0.1 } });
  });
  afterAll(() => bench.close());

  it('admit exactly 60 reads at a scale of 0.1, and say so in every answer', async () => {
    const key = bench.register();
    const statuses = await statusesOf([bench.url], key, 80);
    expect([count(statuses, 200), count(statuses, 429)]).toEqual([60, 20]);
    const refused = await get(bench.url, key);
    expect(refused.headers.get('ratelimit-policy')).toBe('"read";q=60;w=60');
    expect(refused.headers.get('ratelimit')).toMatch(/^"read";r=0;t=\d+$/);
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect((await get(bench.url, bench.register())).status).toBe(200);
    // Writes have another window.
    expect((await get(bench.url, key, 'POST')).status).not.toBe(429);
  });

  it('are in the headers of every answer', async () => {
    const [key, poor] = [bench.register(), bench.register({ scopes: [] })];
    const site = '/v1/sites/0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44';
    const answers = [
      await get(bench.url, key, 'GET', '/v1/nowhere'),
      await get(bench.url, key, 'PATCH', '/v1/sites'),
      await get(bench.url, key, 'GET', '/docs'),
      await get(bench.url, key, 'GET', '/problems/nothing'),
      await get(bench.url, key, 'POST', '/healthz'),
      await get(bench.url, { ...key, token: 'none' }),
      await get(bench.url, poor, 'POST'),
      await get(bench.url, key, 'POST', `${site}/offsite/restore`),
    ];
    for (const { headers, url } of answers) {
      const [, name] = /^"(read|write|mint)";q=\d+;w=60$/.exec(headers.get('ratelimit-policy') ?? '') ?? [];
      expect({ url, state: headers.get('ratelimit') }).toEqual({
        url,
        state: expect.stringMatching(`^"${name}";r=\\d+;t=\\d+$`),
      });
    }
  });

  it('do not count exempt calls, whose answers say how many writes are left', async () => {
    const key = bench.register();
    const path = '/v1/sites/0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44/offsite/restore';
    await get(bench.url, key, 'POST');
    const left = [];
    for (let call = 0; call < 20; call += 1)
      left.push((await get(bench.url, key, 'POST', path)).headers.get('ratelimit')?.split(';')[1]);
    expect(new Set(left)).toEqual(new Set(['r=11']));
  });

  it('count mints by organisation, for all its keys together', async () => {
    const one = bench.register();
    const two = bench.register({ orgId: one.orgId });
    const statuses = [];
    for (const key of [one, two, one]) statuses.push((await get(bench.url, key, 'POST', '/v1/api-keys')).status);
    expect(statuses).toEqual([200, 200, 429]);
  });
});

/** Tells whether all gateways count a key in the same window. If they do, each answer shows a different remainder. */
const countTogether = async (urls: readonly string[], key: TestKey): Promise<boolean> => {
  const left = await Promise.all(
    urls.map(async (url) => Number(/r=(\d+)/.exec((await get(url, key)).headers.get('ratelimit') ?? '')?.[1])),
  );
  return new Set(left).size === urls.length;
};

const missing = missingTools('redis');
(missing === '' ? describe : describe.skip)(`quotas over Redis${missing}`, () => {
  let redis: TestRedis;
  let benches: Bench[];
  const keyEverywhere = (): TestKey => {
    const [first, ...others] = benches;
    const key = first?.register();
    if (key === undefined) throw new Error('no bench');
    for (const other of others) other.register(key);
    return key;
  };
  const urls = () => benches.map(({ url }) => url);
  /**
   * Starts gateways. A `timeoutScale` of 300 gives a Redis command 30 s, so that a busy Redis does not count as
   * unavailable.
   */
  const open = async (timeoutScale: number, count: number): Promise<void> => {
    const usual = process.env['DRYDOCK_TIMEOUT_SCALE'];
    process.env['DRYDOCK_TIMEOUT_SCALE'] = String(timeoutScale);
    benches = await Promise.all(
      Array.from({ length: count }, () => startBench({ config: { rateLimitScale: 0.1, redisUrl: redis.url } })),
    );
    process.env['DRYDOCK_TIMEOUT_SCALE'] = usual;
    // The gateways count in Redis only after they are connected.
    const probe = keyEverywhere();
    await until(async () => countTogether(urls(), probe));
  };
  beforeAll(async () => {
    const started = await testRedis();
    if (started === null) throw new Error('no Redis');
    redis = started;
  });
  afterEach(() => Promise.all(benches.map((bench) => bench.close())));
  afterAll(() => redis.close());

  it('are exact over three gateways', async () => {
    await open(300, 3);
    const statuses = await statusesOf(urls(), keyEverywhere(), 100);
    expect([count(statuses, 200), count(statuses, 429)]).toEqual([60, 40]);
  });

  it('do not wait for a frozen Redis, and use it again once it answers', async () => {
    await open(10, 3);
    process.kill(redis.pid, 'SIGSTOP');
    const key = keyEverywhere();
    const startedMs = performance.now();
    for (let index = 0; index < 50; index += 1) expect((await get(urls()[0] ?? '', key)).status).toBe(200);
    // The first call waits 1 s for Redis. If each call waited, all would take 50 s.
    expect(performance.now() - startedMs).toBeLessThan(40_000);
    process.kill(redis.pid, 'SIGCONT');
    const later = keyEverywhere();
    await until(async () => countTogether(urls(), later));
  });

  it('admit at most three times as much over three gateways without Redis, and nobody gets an error', async () => {
    await open(300, 3);
    process.kill(redis.pid, 'SIGKILL');
    const key = keyEverywhere();
    const statuses = await statusesOf(urls(), key, 240);
    expect(count(statuses, 200)).toBeLessThanOrEqual(180);
    expect(count(statuses, 200) + count(statuses, 429)).toBe(240);
    await redis.restart();
    const later = keyEverywhere();
    await until(async () => countTogether(urls(), later));
  });
});
