import { endpoints } from '@drydock/contracts/platform/endpoints';
import { problemCodes, problemSchema } from '@drydock/contracts/platform/problems';
import { type Bench, startBench } from '../test/fixture';
import { rawRequest, sendRaw } from '../test/raw';

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.close());

const get = (path: string, accept?: string, method = 'GET') =>
  fetch(bench.url + path, { method, headers: accept === undefined ? {} : { accept } });

describe('/problems', () => {
  it.each(problemCodes)('has a page and JSON for %s', async (code) => {
    const page = await get(`/problems/${code}`, 'text/html,*/*');
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await page.text()).toContain(`<code>${code}</code>`);
    const json = await get(`/problems/${code}`, 'application/json');
    expect(await json.json()).toMatchObject({ code, type: `/problems/${code}` });
  });

  it('lists them all, and knows no other', async () => {
    expect(((await (await get('/problems', 'application/json')).json()) as { data: unknown[] }).data).toHaveLength(problemCodes.length);
    for (const code of ['nothing', 'toString', '__proto__', '%2e%2e', '%2e%2e%2f', '..', '<script>']) {
      // As it stands: a client that knows URLs would make another path of it.
      const { status, body } = await sendRaw(bench.port, rawRequest(`GET /problems/${code}`));
      expect([code, status]).toEqual([code, 404]);
      expect(problemSchema.parse(JSON.parse(body)).code).toBe('route_not_found');
    }
  });
});

describe('the pages of the API', () => {
  it('/openapi.json is the document that is committed', async () => {
    const document = (await (await get('/openapi.json')).json()) as object;
    expect(document).toEqual(require('../../../docs/openapi.json'));
  });

  it('/docs shows every endpoint, loads nothing from anywhere and runs no script', async () => {
    const response = await get('/docs');
    const text = await response.text();
    for (const { id } of endpoints) expect(text).toContain(`id="${id}"`);
    expect(text).not.toMatch(/<script|src=|href="\w+:|url\(|@import/);
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  it.each(['/openapi.json', '/docs'])('%s comes compressed to whoever takes it so, and not again to whoever has it', async (path) => {
    const plain = await (await fetch(bench.url + path, { headers: { 'accept-encoding': 'identity' } })).text();
    for (const [accepted, encoding] of [
      ['gzip, br', 'br'],
      ['gzip;q=0.5, br;q=0', 'gzip'],
      ['identity', null],
    ] as const) {
      const response = await fetch(bench.url + path, { headers: { 'accept-encoding': accepted } });
      expect([accepted, response.headers.get('content-encoding')]).toEqual([accepted, encoding]);
      // fetch has unpacked it.
      expect(await response.text()).toBe(plain);
      const etag = response.headers.get('etag') ?? '';
      const again = await fetch(bench.url + path, { headers: { 'accept-encoding': accepted, 'if-none-match': `"other", ${etag}` } });
      expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, '']);
    }
  });

  it('/ leads to them, for people and for programs', async () => {
    const page = await get('/', 'text/html');
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await page.text()).toContain('href="/docs"');
    const { documentation, openapi } = (await (await get('/', 'application/json')).json()) as Record<string, string>;
    for (const path of [documentation, openapi]) expect((await get(path ?? '')).status).toBe(200);
  });

  it('take GET and HEAD alone and are nowhere else', async () => {
    const head = await get('/docs', undefined, 'HEAD');
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await get('/docs', undefined, 'POST');
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    for (const path of ['/docs/', '/DOCS', '/x', '/problems/', '/%64ocs', '/v1', '/v1/']) expect((await get(path)).status).toBe(404);
  });
});
