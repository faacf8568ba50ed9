import { until } from '@drydock/testing/wait';
import { type Bench, startBench } from '../test/fixture';
import { rawRequest, sendRaw } from '../test/raw';

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.close());

const call = (
  path: string,
  init: Omit<RequestInit, 'headers'> & { token?: string; headers?: Record<string, string> } = {},
): Promise<Response> => {
  const { token, headers, ...rest } = init;
  return fetch(bench.url + path, {
    ...rest,
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
  });
};

describe('a call through the gateway', () => {
  it('reaches its service with a token that names the caller, and returns with the gateway’s headers', async () => {
    const key = bench.register({ mode: 'sandbox' });
    const response = await call('/v1/sites?limit=3', { token: key.token, headers: { 'x-request-id': 'my-own-id-1' } });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ ok: true });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-request-id': 'my-own-id-1',
      'x-drydock-mode': 'sandbox',
      'ratelimit-policy': '"read";q=600000;w=60',
      ratelimit: '"read";r=599999;t=60',
      'content-type': 'application/json',
    });
    const { claims, url, headers } = bench.hosting.seen.at(-1) ?? {};
    expect(url).toBe('/v1/sites?limit=3');
    expect(claims).toMatchObject({ key_id: key.keyId, org_id: key.orgId, mode: 'sandbox', request_id: 'my-own-id-1' });
    expect(headers?.['x-request-id']).toBe('my-own-id-1');
  });

  it('takes a body and an Idempotency-Key to the service, both bound to the token', async () => {
    const { token } = bench.register();
    const body = JSON.stringify({ name: 'x', primary_domain: 'a.example.com' });
    const response = await call('/v1/sites', {
      method: 'POST',
      token,
      body,
      headers: { 'content-type': 'application/json', 'idempotency-key': 'once' },
    });
    expect(response.status).toBe(200);
    expect(bench.hosting.seen.at(-1)).toMatchObject({
      body,
      headers: { 'idempotency-key': 'once', 'content-type': 'application/json' },
    });
  });

  it('refuses an Idempotency-Key of more than 255 characters itself, and ignores it where keys are ignored', async () => {
    const { token } = bench.register();
    const order = (length: number) =>
      call('/v1/sites', {
        ...{ method: 'POST', token, body: '{}' },
        headers: { 'content-type': 'application/json', 'idempotency-key': 'k'.repeat(length) },
      });
    expect((await order(255)).status).toBe(200);
    const { arrived } = bench.hosting;
    // The service refuses 15,000 characters beside its token with a 431 without a body, and closes the connection.
    for (const length of [256, 15_000]) {
      const answer = await order(length);
      expect([answer.status, await answer.json()]).toMatchObject([422, { code: 'idempotency_key_invalid' }]);
    }
    expect(bench.hosting.arrived).toBe(arrived);
    const headers = { 'idempotency-key': 'k'.repeat(15_000) };
    expect((await call('/v1/sites', { token, headers })).status).toBe(200);
    expect(bench.hosting.seen.at(-1)?.headers['idempotency-key']).toBeUndefined();
  });
});

describe('the pages around the API', () => {
  it('/healthz and /readyz report that all is well', async () => {
    expect((await call('/healthz')).status).toBe(200);
    const ready = await call('/readyz');
    expect(await ready.json()).toEqual({ status: 'ready', checks: { keys: 'ok', hosting: 'ok' } });
  });

  it('/readyz probes each service once for simultaneous callers, and stops waiting for a silent one', async () => {
    bench.keys.answersProbes = false;
    bench.hosting.answersProbes = false;
    // The time-out of a probe is not scaled, because each readiness check of this test waits until the time-out.
    process.env['DRYDOCK_TIMEOUT_SCALE'] = '1';
    const { probes } = bench.hosting;
    const asked = await Promise.all(Array.from({ length: 20 }, () => call('/readyz')));
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([503]));
    expect(await asked[0]?.json()).toEqual({
      status: 'not_ready',
      checks: { keys: 'timed_out', hosting: 'timed_out' },
    });
    // There may be several probes, because a request that comes after the end of the first probe starts another probe.
    expect(bench.hosting.probes - probes).toBeLessThan(5);
    // The gateway is ready without hosting, because the other services work without hosting.
    bench.keys.answersProbes = true;
    const ready = await until(async () => {
      const answer = await call('/readyz');
      return answer.status === 200 && answer.json();
    });
    expect(ready).toEqual({ status: 'ready', checks: { keys: 'ok', hosting: 'timed_out' } });
    bench.hosting.answersProbes = true;
    await until(async () => (await (await call('/readyz')).text()).includes('"hosting":"ok"'));
  });

  it.each(['/problems/%ff', '/problems/%', '/%ff', '/docs/%'])(
    '%s is an ordinary 404 that does not reveal the software',
    async (path) => {
      const { status, headers, body } = await sendRaw(bench.port, rawRequest(`GET ${path}`));
      expect([status, headers['content-type'], JSON.parse(body).code]).toEqual([
        404,
        'application/problem+json',
        'route_not_found',
      ]);
    },
  );
});
