import { problemSchema } from '@drydock/contracts/platform/problems';
import { type Bench, randomToken, startBench } from '../test/fixture';
import { rawRequest, sendRaw } from '../test/raw';

let bench: Bench;
beforeAll(async () => {
  // The quota is two writes a minute.
  bench = await startBench({ config: { rateLimitScale: 2 / 120 } });
});
afterAll(() => bench.close());

const bad = { path: 'Content-Type: text/plain', length: 'Content-Length: 2' };
const post = async (headers: string[], path = '/v1/sites') => {
  const {
    status,
    body,
    headers: got,
  } = await sendRaw(bench.port, rawRequest(`POST ${path}`, [...headers, bad.length, bad.path], '{}'));
  return { status, got, ...JSON.parse(body) };
};

/** Most requests of these tests fail several checks. The answer must be that of the first failed check. */
describe('the order of the checks', () => {
  it('is hygiene, route, 401, 429, 403, syntax, service', async () => {
    const poor = bench.register({ scopes: ['sites.view'] });
    const authorization = `Authorization: Bearer ${poor.token}`;
    expect(await post(['Host: other.test'], '/v1/nowhere')).toMatchObject({ status: 400, code: 'malformed_request' });
    expect(await post([], '/v1/nowhere')).toMatchObject({ status: 404, code: 'route_not_found' });
    expect(await post([])).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(await post([`Authorization: Bearer ${randomToken()}`])).toMatchObject({
      status: 401,
      code: 'unauthenticated',
    });
    const refused = await post([authorization]);
    expect(refused).toMatchObject({ status: 403, code: 'permission_denied' });
    expect(refused.errors).toEqual([expect.objectContaining({ code: 'permission_missing', detail: 'sites.create' })]);
    await post([authorization]);
    const limited = await post([authorization]);
    expect(limited).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(Number(limited.got['retry-after'])).toBeGreaterThanOrEqual(1);

    const rich = bench.register();
    expect(await post([`Authorization: Bearer ${rich.token}`])).toMatchObject({
      status: 415,
      code: 'unsupported_media_type',
    });
    expect(bench.hosting.arrived).toBe(0);
    expect(bench.keys.lookUps).not.toContain(undefined);
  });

  it('a 403 names every missing permission', async () => {
    const { token } = bench.register({ scopes: [] });
    const response = await fetch(`${bench.url}/v1/sites/0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.status).toBe(403);
    expect(problemSchema.parse(await response.json()).errors?.map(({ detail }) => detail)).toEqual([
      'sites.view',
      'sites.delete',
    ]);
  });

  it('two Idempotency-Keys are refused after the permissions are checked', async () => {
    const { token } = bench.register();
    const answer = await post([`Authorization: Bearer ${token}`, 'Idempotency-Key: a', 'Idempotency-Key: a']);
    expect(answer).toMatchObject({ status: 422, code: 'idempotency_key_invalid' });
  });
});
