import { createHmac, randomBytes } from 'node:crypto';
import net, { type AddressInfo } from 'node:net';
import jwt from 'jsonwebtoken';
import { request as send } from 'undici';
import { uuidv7 } from 'uuidv7';
import { caller, definitions, type Fixture, startFixture, tokenSecret } from '../../test/fixture';
import { type BoundRequest, signInternalToken, signRequestToken, tokenKey } from '../access/internal-token';
import { openPool, pgDatabase } from '../database/pool';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const key = tokenKey(tokenSecret);
const body = Buffer.from('{"name":"a thing"}');
const bound: BoundRequest = { requestId: uuidv7(), method: 'POST', path: '/v1/things', body };
const valid = (): string => signRequestToken(key, 'hosting', caller, bound);
const nowSeconds = (): number => Math.floor(Date.now() / 1000);
const claims = (changes: object = {}): object => {
  const decoded = jwt.decode(valid());
  return { ...(typeof decoded === 'object' ? decoded : {}), ...changes };
};
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const header = { alg: 'HS256', typ: 'drydock-request+jwt' };
/** Signs any content with the right secret, without the checks of a library. */
const craft = (head: object, payload: object, secret = Buffer.from(tokenSecret, 'hex')): string => {
  const text = `${encode(head)}.${encode(payload)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
};

const post = async (
  authorization: string | undefined,
  sent: { path?: string; body?: Buffer; headers?: Record<string, string> } = {},
) => {
  const { port } = fixture.service.server.address() as AddressInfo;
  const response = await send(`http://127.0.0.1:${port}${sent.path ?? '/v1/things'}`, {
    method: 'POST',
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      'content-type': 'application/json',
      ...sent.headers,
    },
    body: sent.body ?? body,
  });
  return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
};

test('the gateway’s own token is accepted', async () => {
  expect((await post(`Bearer ${craft(header, claims())}`)).status).toBe(201);
});

const forged: Array<[string, () => string | undefined]> = [
  ['no token', () => undefined],
  ['Basic', () => `Basic ${Buffer.from('a:b').toString('base64')}`],
  ['lower-case scheme', () => `bearer ${valid()}`],
  ['alg none', () => `Bearer ${encode({ alg: 'none', typ: header.typ })}.${encode(claims())}.`],
  ['alg None with a signature', () => `Bearer ${craft({ alg: 'None', typ: header.typ }, claims())}`],
  [
    'alg HS512',
    () => `Bearer ${jwt.sign(claims(), key, { algorithm: 'HS512', header: { alg: 'HS512', typ: header.typ } })}`,
  ],
  ...['default', '../../dev/null', "' OR 1=1 --", 'http://127.0.0.1/key'].map((kid): [string, () => string] => [
    `kid ${kid}`,
    () => `Bearer ${craft({ ...header, kid }, claims())}`,
  ]),
  ...['jku', 'jwk', 'x5u', 'crit'].map((name): [string, () => string] => [
    name,
    () => `Bearer ${craft({ ...header, [name]: 'x' }, claims())}`,
  ]),
  ['expired', () => `Bearer ${craft(header, claims({ iat: nowSeconds() - 40, exp: nowSeconds() - 10 }))}`],
  ['issued in the future', () => `Bearer ${craft(header, claims({ iat: nowSeconds() + 20, exp: nowSeconds() + 40 }))}`],
  ['nbf in the future', () => `Bearer ${craft(header, claims({ nbf: nowSeconds() + 20 }))}`],
  ['no exp', () => `Bearer ${craft(header, claims({ exp: undefined }))}`],
  ['exp 2099', () => `Bearer ${craft(header, claims({ exp: 4_070_908_800 }))}`],
  ['another audience', () => `Bearer ${craft(header, claims({ aud: 'keys' }))}`],
  ['a list of audiences', () => `Bearer ${craft(header, claims({ aud: ['keys', 'hosting'] }))}`],
  ['another issuer', () => `Bearer ${craft(header, claims({ iss: 'hosting' }))}`],
  ['another typ', () => `Bearer ${craft({ alg: 'HS256', typ: 'JWT' }, claims())}`],
  ['an internal token', () => `Bearer ${signInternalToken(key, { issuer: 'gateway', audience: 'hosting' }, bound)}`],
  ['an unknown claim', () => `Bearer ${craft(header, claims({ admin: true }))}`],
  ['another service’s secret', () => `Bearer ${craft(header, claims(), randomBytes(32))}`],
  ['no signature', () => `Bearer ${valid().split('.').slice(0, 2).join('.')}.`],
  ['no third part', () => `Bearer ${valid().split('.').slice(0, 2).join('.')}`],
  [
    'made for another path',
    () => `Bearer ${signRequestToken(key, 'hosting', caller, { ...bound, path: '/v1/things?a=b' })}`,
  ],
  ['made for another method', () => `Bearer ${signRequestToken(key, 'hosting', caller, { ...bound, method: 'PUT' })}`],
  [
    'made for another body',
    () => `Bearer ${signRequestToken(key, 'hosting', caller, { ...bound, body: Buffer.from('{"name":"b"}') })}`,
  ],
  [
    'made for another idempotency key',
    () => `Bearer ${signRequestToken(key, 'hosting', caller, { ...bound, idempotencyKey: 'k' })}`,
  ],
  [
    'made for another precondition',
    () => `Bearer ${signRequestToken(key, 'hosting', caller, { ...bound, ifMatch: '"1"' })}`,
  ],
  ['nine kilobytes', () => `Bearer ${craft(header, claims({ scopes: ['x'.repeat(9_000)] }))}`],
];

test.each(forged)('a forged token (%s) is 401 and causes no query', async (_name, authorization) => {
  fixture.db.statements.length = 0;
  const answer = await post(authorization());
  expect([answer.status, answer.headers['www-authenticate'], JSON.parse(answer.text).code]).toEqual([
    401,
    'Bearer',
    'unauthenticated',
  ]);
  expect(fixture.db.statements).toEqual([]);
});

test('a token of a megabyte is refused by the limit for headers', async () => {
  expect((await post(`Bearer ${'a'.repeat(1_000_000)}`)).status).toBe(431);
});

test('clocks may differ by four seconds, but not by ten minutes', async () => {
  const at = (seconds: number) =>
    post(`Bearer ${signRequestToken(key, 'hosting', caller, bound, Date.now() + seconds * 1_000)}`);
  expect([(await at(4)).status, (await at(-4)).status, (await at(600)).status, (await at(-600)).status]).toEqual([
    201, 201, 401, 401,
  ]);
});

test('a token works once, and its second use causes no query', async () => {
  const token = valid();
  expect((await post(`Bearer ${token}`)).status).toBe(201);
  fixture.db.statements.length = 0;
  const again = await post(`Bearer ${token}`);
  expect([again.status, JSON.parse(again.text).code, fixture.db.statements]).toEqual([401, 'unauthenticated', []]);
});

test('only the gateway learns that a path does not exist', async () => {
  expect((await post(undefined, { path: '/v1/nothing' })).status).toBe(401);
  expect((await fixture.call({ method: 'GET', path: '/v1/nothing' })).json).toMatchObject({ code: 'route_not_found' });
  expect((await fixture.call({ method: 'GET', path: '/v1/things/' })).status).toBe(404);
  expect((await fixture.call({ method: 'GET', path: '/V1/things' })).status).toBe(404);
  expect((await fixture.call({ method: 'GET', path: '/v1/things/%zz' })).status).toBe(404);
});

test('a method that the contract does not have, even HEAD, is 405 with Allow', async () => {
  const put = await fixture.call({ method: 'PUT', path: '/v1/things' });
  expect([put.status, put.headers['allow']]).toEqual([405, 'POST']);
  expect((await fixture.call({ method: 'HEAD', path: `/v1/things/${uuidv7()}` })).status).toBe(405);
});

test('permission is checked before syntax, and syntax before the id', async () => {
  const rename = (path: string, sent: unknown, scopes: string[]) =>
    fixture.call({ method: 'POST', path, body: sent, caller: { ...caller, scopes } });
  const all = ['sites.create'];
  const bad = '/v1/things/not-an-id/name';
  expect((await rename(bad, { name: 5 }, [])).json).toMatchObject({
    code: 'permission_denied',
    errors: [{ detail: 'sites.create' }],
  });
  expect((await rename(bad, { name: 5 }, all)).json).toMatchObject({ status: 422, code: 'invalid_request' });
  expect((await rename(bad, { name: 'x' }, all)).json).toMatchObject({ status: 404, code: 'site_not_found' });
  expect((await rename(`/v1/things/${uuidv7().toUpperCase()}/name`, { name: 'x' }, all)).status).toBe(200);
});

test.each([
  '00000000-0000-0000-0000-000000000000',
  'a'.repeat(37),
  '%2e%2e',
  '..%5c',
  `${uuidv7()}%0a`,
  `{${uuidv7()}}`,
  `urn:uuid:${uuidv7()}`,
])('the malformed id %s gets the answer of an unknown id', async (id) => {
  expect((await fixture.call({ method: 'GET', path: `/v1/things/${id}` })).json).toMatchObject({
    status: 404,
    code: 'site_not_found',
  });
});

test.each([
  ['POST', '/v1/things'],
  ['POST', `/v1/things/${uuidv7()}/check`],
  ['GET', `/v1/things/${uuidv7()}/events`],
])('%s %s refuses a query parameter that it does not declare', async (method, path) => {
  const answer = await fixture.call({
    method,
    path: `${path}?org_id=x`,
    ...(method === 'POST' ? { body: { name: 'x' } } : {}),
  });
  expect(answer.json).toMatchObject({ status: 422, code: 'invalid_request' });
});

test('each wrong field is named by its pointer, without its value', async () => {
  const answer = await fixture.call({
    method: 'POST',
    path: '/v1/things',
    body: { tags: [1, 'x'], 'org/id': 'hunter2', wish: 'hunter2' },
  });
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.json).toMatchObject({
    code: 'invalid_request',
    errors: expect.arrayContaining([
      expect.objectContaining({ pointer: '/name', code: 'required' }),
      expect.objectContaining({ pointer: '/tags/0', code: 'invalid_type' }),
      expect.objectContaining({ pointer: '/org~1id', code: 'unknown_field' }),
    ]),
  });
  expect(answer.text).not.toContain('hunter2');
});

test('an unknown or repeated query parameter is refused and named', async () => {
  const answer = await fixture.call({ method: 'GET', path: `/v1/things/${uuidv7()}?limit=1&limit=2&org=x` });
  expect(answer.json).toMatchObject({
    code: 'invalid_request',
    errors: [
      { pointer: '?limit', code: 'repeated' },
      { pointer: '?org', code: 'unknown_field' },
    ],
  });
});

test('a query with hundreds of wrong parameters gets 20 errors', async () => {
  const search = `${'limit=1&'.repeat(300)}${Array.from({ length: 300 }, (_, at) => `n${at}=1`).join('&')}`;
  const answer = await fixture.call({ method: 'GET', path: `/v1/things/${uuidv7()}?${search}` });
  expect(answer.json).toMatchObject({ code: 'invalid_request', errors: { length: 20 } });
});

test('a body whose type or encoding is not that of plain JSON is refused', async () => {
  for (const headers of [
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-encoding': 'gzip' },
  ]) {
    const answer = await fixture.call({
      method: 'POST',
      path: '/v1/things',
      body,
      headers: headers as Record<string, string>,
    });
    expect(answer.json).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  }
});

test('a body over 100 kB, announced or chunked, is 422 and closes its connection', async () => {
  const large = Buffer.alloc(101 * 1024, 'a');
  const announced = await fixture.call({ method: 'POST', path: '/v1/things', body: large });
  expect([announced.status, announced.json, announced.headers['connection']]).toEqual([
    422,
    expect.objectContaining({ code: 'body_too_large' }),
    'close',
  ]);
  const { port } = fixture.service.server.address() as AddressInfo;
  const answer = await new Promise<string>((resolve, reject) => {
    let text = '';
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.write(
        `POST /v1/things HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${valid()}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
      );
      const endless = setInterval(() => socket.write(`8000\r\n${'a'.repeat(32_768)}\r\n`), 1);
      socket.once('close', () => {
        clearInterval(endless);
        resolve(text);
      });
    });
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    socket.on('error', () => undefined);
    socket.setTimeout(60_000, () => reject(new Error('the connection stayed open')));
  });
  expect(answer).toContain('body_too_large');
});

test('an answer has the request id of the token, is not cached, and does not reveal the software', async () => {
  const answer = await post(`Bearer ${valid()}`);
  expect(answer.headers).toMatchObject({
    'x-request-id': bound.requestId,
    'cache-control': 'no-store',
    'content-type': 'application/json',
  });
  expect([answer.headers['x-powered-by'], answer.headers['etag']]).toEqual([undefined, undefined]);
  const line = fixture.logged.map((text) => JSON.parse(text)).find(({ request_id }) => request_id === bound.requestId);
  expect(line).toMatchObject({ org_id: caller.orgId, method: 'POST', route: 'POST /v1/things', service: 'hosting' });
});

test('in tests a refusal that the contract does not list is a 500, with the reason only in the log', async () => {
  const answer = await fixture.call({ method: 'POST', path: '/v1/things', body: { name: 'x', wish: 'lie' } });
  expect([answer.status, answer.json]).toEqual([500, expect.objectContaining({ code: 'internal_error' })]);
  expect(answer.text).not.toContain('domain_in_use');
  expect(fixture.logged.at(-1)).toContain('refused with domain_in_use');
});

test('healthz says that the process is alive, and readyz names each check', async () => {
  const { port } = fixture.service.server.address() as AddressInfo;
  const get = async (path: string) => (await send(`http://127.0.0.1:${port}${path}`)).body.json();
  expect(await get('/healthz')).toEqual({ status: 'ok' });
  expect(await get('/readyz')).toEqual({ status: 'ready', checks: { database: 'ok' } });
});

test('a service closes at once although clients hold a silent and an idle connection', async () => {
  const other = await startFixture();
  const { port } = other.service.server.address() as AddressInfo;
  const silent = net.connect(port, '127.0.0.1').on('error', () => undefined);
  await other.call({ method: 'GET', path: `/v1/things/${uuidv7()}` });
  const startedMs = Date.now();
  await other.close();
  expect(Date.now() - startedMs).toBeLessThan(30_000);
  silent.destroy();
});

test('without its database a service is not ready, and answers 503 with Retry-After and the name of the dependency', async () => {
  const pool = openPool('postgresql://nobody@127.0.0.1:1/nothing');
  const other = await startFixture({ database: pgDatabase(pool), ready: { database: () => pool.query('SELECT 1') } });
  const { port } = other.service.server.address() as AddressInfo;
  const ready = await send(`http://127.0.0.1:${port}/readyz`);
  expect([ready.statusCode, await ready.body.json()]).toEqual([
    503,
    { status: 'not_ready', checks: { database: 'failed' } },
  ]);
  for (const idempotencyKey of [undefined, 'k']) {
    const answer = await other.call({
      method: 'POST',
      path: '/v1/things',
      body: { name: 'x' },
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
    expect([answer.status, answer.headers['retry-after'], answer.json]).toEqual([
      503,
      '5',
      expect.objectContaining({ code: 'dependency_unavailable', dependency: 'database' }),
    ]);
    expect(answer.text).not.toContain('ECONNREFUSED');
  }
  await other.close();
});

test('an endpoint that is not written yet tells the gateway where to mount it by a 501, and nobody else', async () => {
  const [readThing] = definitions.filter(({ method }) => method === 'GET');
  if (readThing === undefined) throw new Error('the fixture reads nothing');
  const unwritten = { ...readThing, id: 'readNewThing', path: '/v1/new-things/{thingId}' };
  const own = await startFixture({ unmounted: [unwritten] });
  const answer = await own.call({ method: 'GET', path: `/v1/new-things/${uuidv7()}` });
  expect([answer.status, answer.text]).toEqual([
    501,
    expect.stringContaining('hosting does not mount readNewThing yet'),
  ]);
  const { port } = own.service.server.address() as AddressInfo;
  expect((await send(`http://127.0.0.1:${port}/v1/new-things/x`)).statusCode).toBe(401);
  await own.close();
});
