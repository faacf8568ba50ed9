import { endpoints } from '@drydock/contracts/endpoints';
import { type Bench, randomToken, startBench, type TestKey } from '../test/fixture';
import { rawRequest, sendRaw } from '../test/raw';
import { noId } from './route-table';

let bench: Bench;
let key: TestKey;
let authorization: string;
beforeAll(async () => {
  bench = await startBench();
  key = bench.register();
  authorization = `Authorization: Bearer ${key.token}`;
});
afterAll(() => bench.close());

const id = '0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44';
const send = (bytes: string, answersMax?: number) => sendRaw(bench.port, bytes, answersMax);
/** Sends bytes to the gateway. Resolves with the answer and the number of requests that reached the service. */
async function attack(bytes: string, answersMax?: number) {
  const before = bench.hosting.arrived;
  const answer = await send(bytes, answersMax);
  return { ...answer, arrived: bench.hosting.arrived - before };
}
const codeOf = (body: string): string => JSON.parse(body).code;

describe('requests that two programs could read differently (G12)', () => {
  const chunked = '5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n';
  const smuggled = 'GET /v1/sites HTTP/1.1\r\nHost: x\r\n\r\n';
  it.each([
    ['Content-Length and Transfer-Encoding', ['Content-Length: 5', 'Transfer-Encoding: chunked'], chunked],
    ['Transfer-Encoding and Content-Length', ['Transfer-Encoding: chunked', 'Content-Length: 4'], chunked],
    ['two Transfer-Encodings', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], chunked],
    ['two equal Transfer-Encodings', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunked],
    ['xchunked', ['Transfer-Encoding: xchunked'], chunked],
    ['gzip, chunked', ['Transfer-Encoding: gzip, chunked'], chunked],
    ['two Content-Lengths', ['Content-Length: 2', 'Content-Length: 7'], '{}'],
    ['two equal Content-Lengths', ['Content-Length: 2', 'Content-Length: 2'], '{}'],
    ['a folded header', ['X-A: 1\r\n  Content-Length: 2'], '{}'],
    ['a line feed alone', ['X-A: 1\nContent-Length: 2'], '{}'],
    ['a space before the colon', ['Content-Length : 2'], '{}'],
    ['two Hosts', ['Host: other.test'], ''],
    ['another expectation', ['Expect: 200-maybe'], ''],
    ['two Content-Types', ['Content-Type: application/json'], ''],
    ['a negative Content-Length', ['Content-Length: -1'], ''],
    ['a chunk size that overflows', ['Transfer-Encoding: chunked'], 'FFFFFFFFFFFFFFFFFF\r\n'],
  ])('%s: refused, and no service sees it', async (_name, headers, body) => {
    const line = 'POST /v1/sites';
    const { status, arrived, text } = await attack(
      rawRequest(line, [authorization, 'Content-Type: application/json', ...headers], body + smuggled),
    );
    expect([0, 400]).toContain(status);
    expect(arrived).toBe(0);
    expect(status === 0 || text.includes('application/problem+json')).toBe(true);
    // The smuggled request gets no answer.
    expect(text.match(/HTTP\/1\.1 2/g)).toBeNull();
  });

  it('a target in absolute form is 404', async () => {
    expect(await attack(rawRequest('GET http://elsewhere.test/v1/sites', [authorization]))).toMatchObject({
      status: 404,
      arrived: 0,
    });
  });

  it('pipelined requests get one answer each, in their order', async () => {
    const { text, arrived } = await attack(
      rawRequest('GET /v1/sites', [authorization]) +
        rawRequest('GET /v1/nothing', [authorization]) +
        rawRequest('GET /v1/sites', [authorization]),
      3,
    );
    expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual(['200', '404', '200']);
    expect(arrived).toBe(2);
  });
});

describe('bytes that are no request, behind a request that is not answered yet', () => {
  it('get no answer, which the client would take for the answer to the request', async () => {
    const usual = bench.hosting.answer;
    bench.hosting.answer = (_request, response) => setTimeout(() => response.end('{}'), 100);
    const { text } = await attack(
      `${rawRequest('GET /v1/sites', [authorization])}NO REQUEST\r\n\r\n`,
      Number.POSITIVE_INFINITY,
    );
    bench.hosting.answer = usual;
    expect(text).not.toContain('HTTP/1.1 400');
  });
});

describe('malformed HTTP', () => {
  it.each([
    ['no Host', 'GET /v1/sites HTTP/1.1\r\n\r\n', 400],
    ['no Host for a page', 'GET /docs HTTP/1.1\r\n\r\n', 400],
    ['a line that is none', 'HELLO\r\n\r\n', 400],
    ['another protocol', 'GET /v1/sites HTTP/9.9\r\nHost: x\r\n\r\n', 400],
    ['a bad header', 'GET /v1/sites HTTP/1.1\r\nHost: x\r\nX\u0000: 1\r\n\r\n', 400],
    ['two Content-Lengths', rawRequest('POST /v1/sites', ['Content-Length: 2', 'Content-Length: 7'], '{}'), 400],
    ['two Content-Types', rawRequest('POST /v1/sites', ['Content-Type: a/b', 'Content-Type: a/b']), 400],
    [
      '101 headers',
      rawRequest(
        'GET /v1/sites',
        Array.from({ length: 101 }, (_, index) => `X-${index}: 1`),
      ),
      431,
    ],
    ['20 kB of headers', rawRequest('GET /v1/sites', [`X-A: ${'a'.repeat(20_000)}`]), 431],
    ['a long URL', rawRequest(`GET /v1/sites?${'a'.repeat(20_000)}`), 431],
  ])('%s: a problem with an X-Request-Id, before authentication', async (_name, bytes, expected) => {
    const { status, headers, body } = await send(bytes);
    expect({ status, type: headers['content-type'] }).toEqual({ status: expected, type: 'application/problem+json' });
    expect(headers['x-request-id']).toBe(JSON.parse(body).request_id);
    expect(headers).toHaveProperty('ratelimit');
    expect(headers).toHaveProperty('ratelimit-policy');
  });

  it('an unknown header is accepted in any spelling and is not forwarded', async () => {
    const { status } = await send(rawRequest('GET /v1/sites', [authorization, 'X_Foo: 1', 'X-Foo: 2', 'x-foo: 3']));
    expect({
      status,
      passedOn: Object.keys(bench.hosting.seen.at(-1)?.headers ?? {}).filter((name) => /foo/i.test(name)),
    }).toEqual({
      status: 200,
      passedOn: [],
    });
  });
});

describe('path tricks (G13, G15)', () => {
  it.each([
    '/v1//sites',
    '//v1/sites',
    '/v1/sites/',
    `/v1/sites/${id}/`,
    '/v1/SITES',
    '/V1/sites',
    '/v1/%73ites',
    `/v1/sites\\${id}`,
    '/v1/sites#x',
    '/v1/sites?limit=1#x',
    '/v1/sites/a/b/c/d/e/f',
    '/internal/verify',
    '/v1/internal/verify',
  ])('%s leads nowhere', async (path) => {
    const { status, body, arrived } = await attack(rawRequest(`GET ${path}`, [authorization]));
    // Some paths may already be refused by Node's parser.
    expect([400, 404]).toContain(status);
    expect(status === 400 || codeOf(body) === 'route_not_found').toBe(true);
    expect(arrived).toBe(0);
  });

  it.each([
    ['%41%42', '/v1/sites/AB'],
    ['a%20b', '/v1/sites/a%20b'],
    ['%F0%9F%9A%A2', '/v1/sites/%F0%9F%9A%A2'],
    ['a%3Fb', '/v1/sites/a%3Fb'],
    [id.toUpperCase(), `/v1/sites/${id.toUpperCase()}`],
  ])('a parameter %s arrives as %s', async (given, arrives) => {
    await send(rawRequest(`GET /v1/sites/${given}`, [authorization]));
    expect(bench.hosting.seen.at(-1)?.url).toBe(arrives);
  });

  it.each([
    ['/v1/sites/%2e%2e', ''],
    ['/v1/sites/..', ''],
    ['/v1/sites/.', ''],
    ['/v1/sites/%2E', ''],
    [`/v1/sites/${id}%2Fbackups`, ''],
    [`/v1/sites/${id}%5c..`, ''],
    [`/v1/sites/..%5c${id}`, ''],
    [`/v1/sites/${id}%252Fbackups`, ''],
    [`/v1/sites/${id}%00`, ''],
    [`/v1/sites/${id}%0a`, ''],
    [`/v1/sites/${id};a=b`, ''],
    [`/v1/sites/${id};/backups`, '/backups'],
    ['/v1/sites/%ff', ''],
    ['/v1/sites/%', ''],
    [`/v1/sites/${'a'.repeat(4_000)}`, ''],
  ])('%s is forwarded with another id, which no record has', async (path, rest) => {
    const { arrived } = await attack(rawRequest(`GET ${path}`, [authorization]));
    expect({ arrived, url: bench.hosting.seen.at(-1)?.url }).toEqual({ arrived: 1, url: `/v1/sites/~${rest}` });
  });

  it('the id that replaces a malformed id is malformed for every parameter of the contract', () => {
    const parameters = endpoints.flatMap(({ params = {} }) => Object.values(params));
    expect(parameters.filter(({ schema }) => schema.safeParse(noId).success)).toEqual([]);
  });

  it('a query that is too long is refused with the problem of its parameter', async () => {
    const cursor = await attack(rawRequest(`GET /v1/sites?cursor=${'a'.repeat(10_000)}`, [authorization]));
    expect({ status: cursor.status, code: codeOf(cursor.body), arrived: cursor.arrived }).toEqual({
      status: 422,
      code: 'invalid_cursor',
      arrived: 0,
    });
    // A quotation mark takes two characters in the JSON of a token.
    const quotes = await attack(rawRequest(`GET /v1/sites?cursor=${'"'.repeat(4_000)}`, [authorization]));
    expect({ status: quotes.status, arrived: quotes.arrived }).toEqual({ status: 422, arrived: 0 });
    expect(await attack(rawRequest(`GET /v1/sites?cursor=${'"'.repeat(2_000)}`, [authorization]))).toMatchObject({
      status: 200,
      arrived: 1,
    });
    const long = 'a'.repeat(10_000);
    for (const [path, code] of [
      [`/v1/sites?org_id=${long}`, 'invalid_request'],
      [`/v1/sites?cursor=a&cursor=${long}`, 'invalid_request'],
      [`/v1/sites?limit=${long}`, 'invalid_limit'],
      [`/v1/sites/${id}?cursor=${long}`, 'invalid_request'],
    ]) {
      const refused = await attack(rawRequest(`GET ${path}`, [authorization]));
      expect({ path, status: refused.status, code: codeOf(refused.body), arrived: refused.arrived }).toEqual({
        path,
        status: 422,
        code,
        arrived: 0,
      });
    }
    // The gateway passes on a short parameter that it does not know, such as `x`. The service refuses it.
    await send(rawRequest(`GET /v1/sites/${id}?x=1`, [authorization]));
    expect(bench.hosting.seen.at(-1)?.url).toBe(`/v1/sites/${id}?x=1`);
  });

  it.each(['PUT', 'TRACE', 'PATCH', 'DELETE', 'PROPFIND'])(
    '%s /v1/sites is 405 and names the allowed methods',
    async (method) => {
      const { status, headers, arrived } = await attack(
        rawRequest(`${method} /v1/sites`, [authorization, 'X-HTTP-Method-Override: POST']),
      );
      expect({ status, allow: headers['allow'], arrived }).toEqual({
        status: 405,
        allow: 'GET, HEAD, OPTIONS, POST',
        arrived: 0,
      });
    },
  );
});

describe('size (G9, G10)', () => {
  const post = (headers: string[], body: string) =>
    rawRequest('POST /v1/sites', [authorization, 'Content-Type: application/json', ...headers], body);

  it('a body that is announced as too large is refused unread, and its connection is closed', async () => {
    const { status, body, headers, arrived } = await attack(post([`Content-Length: ${101 * 1024}`], '{"a":'));
    expect({ status, code: codeOf(body), arrived, connection: headers['connection'] }).toEqual({
      status: 422,
      code: 'body_too_large',
      arrived: 0,
      connection: 'close',
    });
  });

  it('a body of endless chunks is refused', async () => {
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`;
    const { status, body, arrived } = await attack(post(['Transfer-Encoding: chunked'], chunk.repeat(12)));
    expect({ status, code: codeOf(body), arrived }).toEqual({ status: 422, code: 'body_too_large', arrived: 0 });
  });

  it('a body of 100 KiB is accepted', async () => {
    const body = `"${'x'.repeat(100 * 1024 - 2)}"`;
    expect(await attack(post([`Content-Length: ${body.length}`], body))).toMatchObject({ status: 200, arrived: 1 });
    expect(bench.hosting.seen.at(-1)?.body).toHaveLength(100 * 1024);
  });

  it.each([
    ['text/plain', 'Content-Type: text/plain'],
    ['a form', 'Content-Type: application/x-www-form-urlencoded'],
    ['gzip', 'Content-Type: application/json\r\nContent-Encoding: gzip'],
    ['nothing', 'X-Nothing: 1'],
  ])('a body that is %s is refused', async (_name, header) => {
    const { status, body, arrived } = await attack(
      rawRequest('POST /v1/sites', [authorization, header, 'Content-Length: 2'], '{}'),
    );
    expect({ status, code: codeOf(body), arrived }).toEqual({
      status: 415,
      code: 'unsupported_media_type',
      arrived: 0,
    });
    // The contract has no 415 for `POST /v1/api-keys`.
    const closed = await attack(rawRequest('POST /v1/api-keys', [authorization, header, 'Content-Length: 2'], '{}'));
    expect({ status: closed.status, code: codeOf(closed.body) }).toEqual({ status: 422, code: 'invalid_content_type' });
  });

  it.each([
    ['17 kB in one header', [`X-Long: ${'a'.repeat(17_000)}`]],
    ['2,000 headers', Array.from({ length: 2_000 }, (_, index) => `X-${index}: 1`)],
    ['150 headers', Array.from({ length: 150 }, (_, index) => `X-${index}: 1`)],
  ])('%s are refused', async (_name, headers) => {
    const { status, arrived } = await attack(rawRequest('GET /v1/sites', [authorization, ...headers]));
    expect([422, 431]).toContain(status);
    expect(arrived).toBe(0);
    expect((await fetch(`${bench.url}/healthz`)).status).toBe(200);
  });

  it('a Last-Event-ID that is too long is not forwarded, because the service refuses large headers', async () => {
    const events = `GET /v1/sites/${id}/workflows/${id}/events`;
    const { status, arrived } = await attack(
      rawRequest(events, [authorization, `Last-Event-ID: ${'1'.repeat(15_900)}`]),
    );
    expect({ status, arrived }).toEqual({ status: 200, arrived: 1 });
    expect(bench.hosting.seen.at(-1)?.headers['last-event-id']).toBeUndefined();
  });

  it('Expect: 100-continue gets its 100 only once the body is wanted', async () => {
    const good = await send(post(['Expect: 100-continue', 'Content-Length: 2'], '{}'));
    expect([...good.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual(['100', '200']);
    const refused = await send(rawRequest('POST /v1/sites', ['Expect: 100-continue', 'Content-Length: 2'], '{}'));
    expect([...refused.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual(['401']);
  });
});

describe('invalid keys (H9)', () => {
  it('all get one identical 401', async () => {
    const { token } = key;
    const swapped = `${token.slice(0, 8)}${token.slice(8, 20).split('').reverse().join('')}${token.slice(20)}`;
    const table: Array<[string, string[]]> = [
      ['', []],
      ['', ['Authorization: Bearer']],
      ['', [`Authorization: Basic ${Buffer.from(token).toString('base64')}`]],
      ['', [`Authorization:Bearer${token}`]],
      ['', [`Authorization: Bearer ${token.slice(0, -1)}`]],
      ['', [`Authorization: Bearer ${token}x`]],
      ['', [`Authorization: Bearer ${token.replace('live', 'test')}`]],
      ['', [`Authorization: Bearer ${swapped}`]],
      ['', [`Authorization: Bearer ${token.replace('dd_', 'DD_')}`]],
      ['', [`Authorization: Bearer ${randomToken()}`]],
      ['', [`Authorization: Bearer ${token.slice(0, -1)}\u00e9`]],
      ['', [authorization, authorization]],
      ['', [authorization, 'Authorization: Bearer x']],
      [`?access_token=${token}`, []],
      ['', [`Cookie: token=${token}`]],
      ['', [`X-Api-Key: ${token}`]],
    ];
    const answers = [];
    for (const [query, headers] of table) {
      const answer = await attack(rawRequest(`GET /v1/sites${query}`, [...headers, 'X-Request-Id: same-for-all']));
      const { date: _date, ...rest } = answer.headers;
      answers.push(
        JSON.stringify({ status: answer.status, body: answer.body, headers: rest, arrived: answer.arrived }),
      );
    }
    expect(new Set(answers).size).toBe(1);
    expect(JSON.parse(answers[0] ?? '')).toMatchObject({
      status: 401,
      arrived: 0,
      headers: { 'www-authenticate': 'Bearer' },
    });
  });

  it.each(['bearer', 'BEARER', 'Bearer  '])('the scheme %s is accepted, as RFC 9110 requires', async (scheme) => {
    expect((await send(rawRequest('GET /v1/sites', [`Authorization: ${scheme} ${key.token}`]))).status).toBe(200);
  });

  it('200 tokens with a wrong checksum cause no look-up', async () => {
    const before = bench.keys.lookUps.length;
    const statuses = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const token = `${randomToken().slice(0, -6)}000000`;
        return (await fetch(`${bench.url}/v1/sites`, { headers: { authorization: `Bearer ${token}` } })).status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([401]));
    expect(bench.keys.lookUps.length).toBe(before);
  });
});

describe('headers about the client itself (H13)', () => {
  it('reach no service', async () => {
    const spoofed = [
      `X-Org-Id: ${id}`,
      'X-Internal-Token: x',
      'Authorization-Internal: x',
      'X-Forwarded-For: 127.0.0.1',
      'X-Forwarded-Host: evil.test',
      'Forwarded: for=127.0.0.1',
      'Traceparent: garbage',
      'Tracestate: a=b',
      'Cookie: a=b',
      'Connection: authorization, x-request-id',
      'Upgrade: h2c',
      'Accept: text/evil',
      'User-Agent: evil',
      'Content-Type: text/evil',
    ];
    await send(rawRequest('GET /v1/sites', [authorization, ...spoofed]));
    const { headers = {}, claims } = bench.hosting.seen.at(-1) ?? {};
    expect(Object.keys(headers).sort()).toEqual(['accept', 'authorization', 'connection', 'host', 'x-request-id']);
    expect(JSON.stringify(headers)).not.toMatch(/evil|garbage/);
    expect(headers.authorization).not.toContain(key.token);
    expect(claims?.org_id).toBe(key.orgId);
  });
});
