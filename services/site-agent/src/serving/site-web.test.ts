import { randomBytes } from 'node:crypto';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';

let host: TestHost;
let site: FilledSite;
const siteId = newSiteId();
beforeAll(async () => {
  host = await startHost(await hostConfig());
  site = await host.client.ensureSite(siteId, { domain: 'example.org' }, claim(1));
  await mkdir(path.join(site.files_dir, 'sub'));
  await mkdir(path.join(site.files_dir, '.git'));
  const secret = path.join(host.config.SITES_DIR, 'secret.txt');
  await writeFile(secret, 'top secret');
  const files: Record<string, string> = {
    'index.html': '<h1>plain {{name}}</h1>',
    'sub/index.html': 'sub index',
    'style.css': 'a{}',
    'data.bin': '0123456789',
    '.env': 'top secret',
    '.git/config': 'top secret',
    'empty.txt': '',
    'list.html':
      '<?each select name, n from items order by n ?><li title="{{ name }}">{{n}}</li><?none?>nothing<?end?>!<?sql select count(*) from items ?>',
    'broken.html': 'head <?sql select nope from items ?>',
    'slow.html': '<?sql select pg_sleep(10) ?>',
    'write.html': "<?sql with x as (insert into items values ('evil', 9) returning 1) select * from x ?>",
    'escape.html': "<?sql select 1; commit; insert into items values ('evil', 9) ?>",
    'moment.html':
      '<?sql select count(*) from items ?>-<?sql select pg_sleep(0.2) ?>-<?sql select count(*) from items ?>',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(site.files_dir, name), text);
  await symlink('style.css', path.join(site.files_dir, 'inside.css'));
  await symlink(secret, path.join(site.files_dir, 'outside.txt'));
  await symlink('../../../site.json', path.join(site.files_dir, 'record.json'));
  await symlink(host.config.SITES_DIR, path.join(site.files_dir, 'up'));
  await symlink('loop', path.join(site.files_dir, 'loop'));
  await runSql(
    site.database_url,
    'create table items (name text, n int); insert into items values (\'<b>&"x"\', 1), (null, 2)',
  );
});
afterAll(() => clearHost(host, [siteId]));

/** Sends a path unchanged, because fetch would normalise it. */
function get(
  rawPath: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<{ status: number; headers: http.IncomingHttpHeaders; text: string }> {
  const { port } = new URL(site.url);
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: '127.0.0.1', port, path: rawPath, headers, method, agent: false },
      (response) => {
        let text = '';
        response.on('data', (part) => {
          text += String(part);
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      },
    );
    request.on('error', reject);
    request.end();
  });
}

test.each([
  ['/', 'text/html; charset=utf-8', '<h1>plain {{name}}</h1>'],
  ['/sub/', 'text/html; charset=utf-8', 'sub index'],
  ['/style.css', 'text/css; charset=utf-8', 'a{}'],
  ['/style.css?v=../x', 'text/css; charset=utf-8', 'a{}'],
  ['/inside.css', 'text/css; charset=utf-8', 'a{}'],
  ['/empty.txt', 'text/plain; charset=utf-8', ''],
])('%s is served as %s', async (rawPath, type, text) => {
  expect(await get(rawPath)).toMatchObject({
    status: 200,
    text,
    headers: { 'content-type': type, 'x-content-type-options': 'nosniff' },
  });
});

test.each([
  '/../secret.txt',
  '/../../secret.txt',
  '/%2e%2e/%2e%2e/secret.txt',
  '/sub/..%2f..%2f..%2fsecret.txt',
  '/..%5c..%5csecret.txt',
  '/sub/../../../../site.json',
  '/.env',
  '/%2eenv',
  '/.git/config',
  '/outside.txt',
  '/record.json',
  '/up/secret.txt',
  '/up/',
  '/loop',
  '/style.css/',
  '/style.css/x',
  '/index.html%00.css',
  '/%ff',
  '/missing',
  '//etc/passwd',
  '/release.json',
  `/${'a'.repeat(300)}`,
])('%s is not there', async (rawPath) => {
  const answer = await get(rawPath);
  expect(answer.status).toBe(404);
  expect(answer.text).not.toContain('secret');
});

test('a folder without its slash is redirected, within the site', async () => {
  expect(await get('/sub')).toMatchObject({ status: 308, headers: { location: '/sub/' } });
  expect((await get('//sub')).headers.location).toBe('/sub/');
});

test('ETag, HEAD, ranges and methods', async () => {
  const whole = await get('/data.bin');
  const { etag = '' } = whole.headers;
  expect(await get('/data.bin', { 'if-none-match': etag })).toMatchObject({ status: 304, text: '' });
  expect(await get('/data.bin', {}, 'HEAD')).toMatchObject({
    status: 200,
    text: '',
    headers: { 'content-length': '10' },
  });
  expect(await get('/data.bin', { range: 'bytes=2-4' })).toMatchObject({
    status: 206,
    text: '234',
    headers: { 'content-range': 'bytes 2-4/10' },
  });
  expect(await get('/data.bin', { range: 'bytes=-3' })).toMatchObject({ status: 206, text: '789' });
  expect(await get('/data.bin', { range: 'bytes=8-99', 'if-range': etag })).toMatchObject({ status: 206, text: '89' });
  expect(await get('/data.bin', { range: 'bytes=8-', 'if-range': '"other"' })).toMatchObject({ status: 200 });
  expect(await get('/data.bin', { range: 'bytes=10-' })).toMatchObject({
    status: 416,
    headers: { 'content-range': 'bytes */10' },
  });
  expect(await get('/data.bin', { range: 'bytes=1-2,4-5' })).toMatchObject({ status: 200 });
  expect(await get('/data.bin', {}, 'POST')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  await writeFile(path.join(site.files_dir, 'data.bin'), 'other-size');
  expect((await get('/data.bin', { 'if-none-match': etag })).status).toBe(200);
});

test('a page shows rows, escaped, and something else without them', async () => {
  expect((await get('/list.html')).text).toBe('<li title="&lt;b&gt;&amp;&quot;x&quot;">1</li><li title="">2</li>!2');
  await writeFile(
    path.join(site.files_dir, 'none.html'),
    '<?each select 1 as x where false ?>{{x}}<?none?>nothing<?end?>',
  );
  expect((await get('/none.html')).text).toBe('nothing');
});

test('a page that fails is answered 500 without a part of the page or the reason', async () => {
  for (const page of ['/broken.html', '/write.html', '/escape.html', '/slow.html']) {
    expect(await get(page)).toMatchObject({ status: 500, text: 'This page could not be shown\n' });
  }
  expect(await runSql(site.database_url, "select * from items where name = 'evil'")).toEqual([]);
});

test('a page shows one moment, whatever is written meanwhile', async () => {
  const page = get('/moment.html');
  const writes = Array.from({ length: 5 }, () => runSql(site.database_url, 'insert into items values (null, 3)'));
  const [, first, last] = /^(\d+)--(\d+)$/.exec((await page).text) ?? [];
  expect(first).toBe(last);
  await Promise.all(writes);
});

test('nobody but the host itself gets past a freeze', async () => {
  await host.client.freezeSite(siteId, 60_000, claim(2));
  let isThrough = false;
  const asked = get('/style.css', { 'x-drydock-probe': 'a'.repeat(48) }).finally(() => {
    isThrough = true;
  });
  // A request that passes the freeze would be answered within this time.
  await sleep(500);
  expect(isThrough).toBe(false);
  await host.client.thawSite(siteId, claim(2));
  expect((await asked).status).toBe(200);
});

test('a file of many pieces comes whole, and so does a range across them', async () => {
  const bytes = randomBytes(3_000_001);
  await writeFile(path.join(site.files_dir, 'large.bin'), bytes);
  const url = new URL('large.bin', site.url);
  expect(Buffer.from(await (await fetch(url)).arrayBuffer()).equals(bytes)).toBe(true);
  const part = await fetch(url, { headers: { range: 'bytes=65000-1000000' } });
  expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(65_000, 1_000_001))).toBe(true);
});
