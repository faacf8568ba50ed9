import { endpoints } from '@drydock/contracts/endpoints';
import { bodyRefusalsOf, type EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import { problemSchema } from '@drydock/contracts/platform/problems';
import { answerOfProblem } from '@drydock/service/http';
import { type Bench, startBench, type TestKey } from '../test/fixture';

const requestId = 'my-own-request-1';
const ids = '0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44';
const pathOf = ({ path }: EndpointDefinition): string => path.replace(/\{\w+\}/g, ids);
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

let bench: Bench;
let rich: TestKey;
let poor: TestKey;
beforeAll(async () => {
  bench = await startBench({ more: ['compute', 'agency', 'databases'] });
  [rich, poor] = [bench.register(), bench.register({ scopes: [] })];
  // `wantedAnswer` decides how every service answers: with a success (`well`), or with a problem of the given status.
  for (const service of Object.values(bench.services))
    service.answer = (_request, response, { headers }) => {
      const id = String(headers['x-request-id']);
      const refusal = {
        well: null,
        404: problem('site_not_found'),
        422: problem('operation_in_progress'),
        503: problem('dependency_unavailable'),
      };
      const wanted = refusal[wantedAnswer];
      const answer =
        wanted === null
          ? { status: 200, headers: { 'content-type': 'application/json' }, text: '{}' }
          : answerOfProblem(wanted, id, {});
      response.writeHead(answer.status, { 'cache-control': 'no-store', ...answer.headers });
      response.end(answer.text);
    };
});
afterAll(() => bench.close());

let wantedAnswer: 'well' | 404 | 422 | 503 = 'well';

interface Asked {
  method?: string;
  key?: TestKey | null;
  contentType?: string;
}

async function ask(
  path: string,
  { method = 'GET', key = rich, contentType = 'application/json' }: Asked = {},
): Promise<Response> {
  const headers = { 'x-request-id': requestId, ...(key === null ? {} : { authorization: `Bearer ${key.token}` }) };
  return fetch(
    bench.url + path,
    method === 'GET' ? { headers } : { method, headers: { ...headers, 'content-type': contentType }, body: '{}' },
  );
}

/** Checks the headers that every answer has. Returns the status of the answer and the name of its quota. */
async function headersOf(response: Response): Promise<string> {
  const text = await response.text();
  const { headers, status } = response;
  // An answer that is the same for everybody may be stored, if it is revalidated with its ETag.
  const kept = headers.get('etag') === null ? 'no-store' : 'no-cache';
  expect([headers.get('x-request-id'), headers.get('cache-control')]).toEqual([requestId, kept]);
  const [, name] = /^"(read|write|mint)";q=\d+;w=60$/.exec(headers.get('ratelimit-policy') ?? '') ?? [];
  expect(headers.get('ratelimit')).toMatch(new RegExp(`^"${name}";r=\\d+;t=\\d+$`));
  if (status >= 400) {
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(problemSchema.parse(JSON.parse(text))).toMatchObject({ status, request_id: requestId });
  }
  return `${status} ${name}`;
}

describe('X-Request-Id, RateLimit, RateLimit-Policy and Cache-Control are on every answer of', () => {
  it.each(endpoints.map((endpoint) => [endpoint.id, endpoint] as const))('%s', async (_id, endpoint) => {
    const { method, body, permissions } = endpoint;
    const path = pathOf(endpoint);
    const quota = endpoint.quota === 'exempt' ? 'write' : endpoint.quota;
    for (const answer of ['well', 404, 422, 503] as const) {
      wantedAnswer = answer;
      expect(await headersOf(await ask(path, { method }))).toBe(`${answer === 'well' ? 200 : answer} ${quota}`);
    }
    wantedAnswer = 'well';
    expect(await headersOf(await ask(path, { method, key: null }))).toBe(`401 ${quota}`);
    if (permissions.length > 0) expect(await headersOf(await ask(path, { method, key: poor }))).toBe(`403 ${quota}`);
    const { status: refused } = problem(bodyRefusalsOf(endpoint).otherType);
    if (body !== undefined)
      expect(await headersOf(await ask(path, { method, contentType: 'text/plain' }))).toBe(`${refused} ${quota}`);
  });

  it.each([...new Set(endpoints.map(pathOf))])(
    '%s with an unknown method, and of an unknown path below it',
    async (path) => {
      const here = endpoints.filter((endpoint) => pathOf(endpoint) === path);
      const known: string[] = here.map(({ method }) => method);
      const hasHead = here.some(
        ({ method, response }) => method === 'GET' && response.contentType !== 'text/event-stream',
      );
      const allowed = [...known, 'OPTIONS', ...(hasHead ? ['HEAD'] : [])].sort();
      const options = await ask(path, { method: 'OPTIONS', key: null });
      expect([options.status, options.headers.get('allow')?.split(', ')]).toEqual([204, allowed]);
      expect(await headersOf(options)).toBe('204 read');
      for (const method of methods.filter((unknown) => !known.includes(unknown))) {
        const response = await ask(path, { method });
        expect(response.headers.get('allow')?.split(', ')).toEqual(allowed);
        expect(await headersOf(response)).toBe(`405 ${method === 'GET' ? 'read' : 'write'}`);
      }
      expect(await headersOf(await ask(`${path}/nothing/of/ours`))).toBe('404 read');
    },
  );

  it.each(['/', '/docs', '/openapi.json', '/problems', '/problems/rate_limited', '/healthz', '/readyz'])(
    '%s',
    async (path) => {
      expect(await headersOf(await ask(path, { key: null }))).toBe('200 read');
      expect(await headersOf(await ask(path, { key: null, method: 'POST' }))).toBe('405 write');
    },
  );

  it.each(['/nowhere', '/problems/nothing', '/v1'])('%s', async (path) => {
    expect(await headersOf(await ask(path, { key: null }))).toBe('404 read');
  });
});
