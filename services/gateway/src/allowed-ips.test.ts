import { type Bench, startBench } from '../test/fixture';

const ask = async ({ url }: Bench, token: string, forwardedFor?: string): Promise<number> => {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor }),
  };
  return (await fetch(`${url}/v1/sites`, { headers })).status;
};

test('a key works only from its addresses, also while it is cached, and elsewhere gets the 401 of an unknown key', async () => {
  const bench = await startBench();
  const here = bench.register({ allowedIps: ['127.0.0.0/8'] });
  const elsewhere = bench.register({ allowedIps: ['203.0.113.0/24'] });
  for (const _time of ['asked about', 'remembered']) {
    expect([
      await ask(bench, here.token),
      await ask(bench, elsewhere.token),
      await ask(bench, elsewhere.token, '203.0.113.7'),
    ]).toEqual([200, 401, 401]);
  }
  const refused = await fetch(`${bench.url}/v1/sites`, { headers: { authorization: `Bearer ${elsewhere.token}` } });
  const unknown = await fetch(`${bench.url}/v1/sites`, {
    headers: { authorization: `Bearer ${here.token.replace(/.$/, '_')}` },
  });
  const { request_id: _one, ...said } = (await refused.json()) as Record<string, unknown>;
  const { request_id: _other, ...saidOfNone } = (await unknown.json()) as Record<string, unknown>;
  expect(said).toEqual(saidOfNone);
  await bench.close();
});

test('behind a trusted proxy the address counts that the proxy names', async () => {
  const bench = await startBench({ config: { trustedProxies: ['127.0.0.1'] } });
  const key = bench.register({ allowedIps: ['203.0.113.0/24'] });
  expect(await ask(bench, key.token, '203.0.113.7')).toBe(200);
  expect(await ask(bench, key.token, '198.51.100.1')).toBe(401);
  expect(await ask(bench, key.token, '203.0.113.7, 198.51.100.1')).toBe(401);
  expect(await ask(bench, key.token)).toBe(401);
  await bench.close();
});
