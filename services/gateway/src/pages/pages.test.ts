import { problemCodes, problemSchema } from '@drydock/contracts/platform/problems';
import { type Bench, startBench } from '../../test/fixture';
import { rawRequest, sendRaw } from '../../test/raw';
import { guides, partsOfGuide, renderGuide } from './guides';

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

  it('lists all codes, and any other code is 404', async () => {
    expect(((await (await get('/problems', 'application/json')).json()) as { data: unknown[] }).data).toHaveLength(
      problemCodes.length,
    );
    for (const code of ['nothing', 'toString', '__proto__', '%2e%2e', '%2e%2e%2f', '..', '<script>']) {
      // The path is sent raw, because a client that parses URLs would change it.
      const { status, body } = await sendRaw(bench.port, rawRequest(`GET /problems/${code}`));
      expect([code, status]).toEqual([code, 404]);
      expect(problemSchema.parse(JSON.parse(body)).code).toBe('route_not_found');
    }
  });
});

describe('the pages of the API', () => {
  it('/openapi.json is the committed document', async () => {
    const document = (await (await get('/openapi.json')).json()) as object;
    expect(document).toEqual(require('../../../../docs/openapi.json'));
  });

  it("/docs runs scripts of its own origin only, and is nobody's frame", async () => {
    for (const path of ['/docs', '/docs/guides', '/docs/guides/events', '/problems', '/problems/rate_limited']) {
      const response = await get(path, 'text/html');
      const text = await response.text();
      // Every script is a file of the gateway, and the page contains no inline event handler and no inline style.
      expect(
        text.match(
          /<script(?! src="\/docs\/\w+\.js"(?: defer)?><\/script>)|\ssrc="(?!\/)|<link[^>]+href="(?!\/docs\/)|\son\w+=|\sstyle=|<style/g,
        ),
      ).toBeNull();
      const policy = response.headers.get('content-security-policy');
      expect(policy).toMatch(/^default-src 'none'; script-src 'self';/);
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy?.includes("'unsafe-inline'")).toBe(path === '/docs');
      expect(policy).not.toContain("'unsafe-eval'");
    }
    expect((await get('/openapi.json')).headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; base-uri/,
    );
  });

  it('every guide for callers is served, its links lead somewhere, and its text never becomes markup', async () => {
    const known = new Set([
      '/docs',
      '/docs/guides',
      '/problems',
      '/openapi.json',
      ...problemCodes.map((code) => `/problems/${code}`),
    ]);
    for (const { name } of guides) known.add(`/docs/guides/${name}`);
    for (const { name } of guides) {
      const response = await get(`/docs/guides/${name}`);
      expect([name, response.status]).toEqual([name, 200]);
      const text = await response.text();
      const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]));
      const targets = [...text.matchAll(/<a href="([^"]+)"/g)].map((match) => match[1] ?? '');
      expect(targets.filter((target) => target.startsWith('#') && !ids.has(target.slice(1)))).toEqual([]);
      expect(targets.filter((target) => !/^(#|https:)/.test(target) && !known.has(target.split('#')[0] ?? ''))).toEqual(
        [],
      );
    }
    const { html } = renderGuide(
      '# A <b>`x`</b>\n\n<script>alert(1)</script> [a](javascript:alert(1)) [b](../../packages/cli/README.md) [c](errors.md#x)\n',
    );
    expect(html).toBe(
      '<h1 id="a-bxb">A &lt;b&gt;<code>x</code>&lt;/b&gt;</h1>\n<p>&lt;script&gt;alert(1)&lt;/script&gt; [a](javascript:alert(1)) <span>b</span> <a href="/docs/guides/errors#x">c</a></p>\n',
    );
    for (const name of ['nothing', 'toString', '..%2f..%2fREADME', 'deploying'])
      expect((await get(`/docs/guides/${name}`)).status).toBe(404);
  });

  it('the search index has every word of every guide and problem, under a heading of its page', async () => {
    const parts = (await (await get('/docs/search.json')).json()) as { href: string; heading: string; text: string }[];
    for (const { name } of guides) {
      const page = await (await get(`/docs/guides/${name}`)).text();
      const own = parts.filter(({ href }) => href.startsWith(`/docs/guides/${name}#`));
      const ids = own.map(({ href }) => href.split('#')[1]);
      expect(ids).toEqual([...page.matchAll(/<h\d id="([^"]+)"/g)].map((match) => match[1]));
      const article = page.slice(page.indexOf('<h1'), page.indexOf('</article>'));
      const read = article.replace(/<[^>]+>/g, ' ').replace(/&(?:lt|gt|amp|quot);/g, ' ');
      const has = new Set(own.flatMap(({ heading, text }) => `${heading} ${text}`.split(/[^\p{L}\p{N}]+/u)));
      expect(read.split(/[^\p{L}\p{N}]+/u).filter((word) => !has.has(word))).toEqual([]);
    }
    expect(parts.filter(({ href }) => href.startsWith('/problems/')).map(({ heading }) => heading)).toEqual(
      problemCodes,
    );
    expect(
      partsOfGuide({ name: 'errors', title: 'Errors' }, '# A `b`\n\nc **d**\ne\n\n## F\n\n```sh\ng\n```\n'),
    ).toEqual([
      { href: '/docs/guides/errors#a-b', guide: 'Errors', heading: 'A b', text: 'c d e' },
      { href: '/docs/guides/errors#f', guide: 'Errors', heading: 'F', text: 'g' },
    ]);
  });

  it.each([
    '/openapi.json',
    '/docs',
    '/docs/page.css',
    '/docs/reference.js',
    '/docs/guides/events',
    '/docs/search.json',
  ])('%s is compressed for clients that accept it, and 304 for clients that have it', async (path) => {
    const plain = await (await fetch(bench.url + path, { headers: { 'accept-encoding': 'identity' } })).text();
    for (const [accepted, encoding] of [
      ['gzip, br', 'br'],
      ['gzip;q=0.5, br;q=0', 'gzip'],
      ['identity', null],
    ] as const) {
      const response = await fetch(bench.url + path, { headers: { 'accept-encoding': accepted } });
      expect([accepted, response.headers.get('content-encoding')]).toEqual([accepted, encoding]);
      // fetch has decompressed the body.
      expect(await response.text()).toBe(plain);
      const etag = response.headers.get('etag') ?? '';
      const again = await fetch(bench.url + path, {
        headers: { 'accept-encoding': accepted, 'if-none-match': `"other", ${etag}` },
      });
      expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, '']);
    }
  });

  it('/ leads people and programs to the documentation', async () => {
    const page = await fetch(`${bench.url}/`, { headers: { accept: 'text/html' }, redirect: 'manual' });
    expect([page.status, page.headers.get('location')]).toEqual([302, '/docs']);
    const { documentation, openapi } = (await (await get('/', 'application/json')).json()) as Record<string, string>;
    for (const path of [documentation, openapi]) expect((await get(path ?? '')).status).toBe(200);
  });

  it('accept only GET and HEAD, and only at their exact paths', async () => {
    const head = await get('/docs', undefined, 'HEAD');
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await get('/docs', undefined, 'POST');
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
    for (const path of [
      '/docs/',
      '/DOCS',
      '/docs/x',
      '/docs/page.css/',
      '/docs/guides/',
      '/x',
      '/problems/',
      '/%64ocs',
      '/v1',
      '/v1/',
    ])
      expect((await get(path)).status).toBe(404);
  });
});
