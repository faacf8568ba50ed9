/**
 * @processes
 * @root
 */
import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, open, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { until } from '@drydock/testing/wait';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';

/**
 * Returns an application that answers with its name and id. /slow answers late, and /crash ends the process. The
 * application asks for port 3000, which is not the site's port.
 */
const appSource = (name: string): string => `
const http = require('node:http');
const id = require('node:crypto').randomUUID();
http.createServer((request, response) => {
  if (request.url === '/crash') return process.exit(1);
  const body = [];
  request.on('data', (part) => body.push(part)).on('end', () => setTimeout(() => {
    response.setHeader('x-app', 'yes');
    response.setHeader('set-cookie', ['a=1', 'b=2']);
    response.end(JSON.stringify({ name: ${JSON.stringify(name)}, id, uid: process.getuid(), method: request.method,
      body: Buffer.concat(body).toString(), probe: request.headers['x-drydock-probe'] ?? null, env: Object.keys(process.env).sort() }));
  }, request.url === '/slow' ? 700 : 0));
}).listen(3000, '0.0.0.0');
`;

interface Told {
  name: string;
  id: string;
  uid: number;
  method: string;
  body: string;
  probe: string | null;
  env: string[];
}

let host: TestHost;
let site: FilledSite;
let neighbour: FilledSite;
const siteId = newSiteId();
const neighbourId = newSiteId();

async function putApp(target: FilledSite, name: string): Promise<void> {
  await writeFile(path.join(target.files_dir, 'app.js'), appSource(name));
}
async function ask(target: FilledSite, page = '', init: RequestInit = {}): Promise<Told> {
  const response = await fetch(new URL(page, target.url), init);
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as Told;
}

beforeAll(async () => {
  host = await startHost(await hostConfig());
  site = await host.client.ensureSite(siteId, { domain: 'app.example.org' }, claim(1));
  neighbour = await host.client.ensureSite(neighbourId, { domain: 'app2.example.org' }, claim(1));
  await putApp(site, 'first');
  await putApp(neighbour, 'neighbour');
});
afterAll(() => clearHost(host, [siteId, neighbourId]));

it('a site with an app.js is served by it, whatever its port; method, body and repeated headers pass', async () => {
  const response = await fetch(new URL('orders?x=1', site.url), { method: 'POST', body: 'three masts' });
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  const told = (await response.json()) as Told;
  expect(told).toMatchObject({ name: 'first', method: 'POST', body: 'three masts', probe: null });
});

it('an application gets its own database and nothing of the host’s environment, and runs as the site’s account', async () => {
  const told = await ask(site);
  expect(told.env).toEqual(['DATABASE_URL', 'HOME', 'NODE_ENV', 'PATH', 'PORT']);
  if (process.getuid?.() === 0) expect(told.uid).toBe(site.owner?.uid);
});

it('its public folder is sent as it is, its code never', async () => {
  await mkdir(path.join(site.files_dir, 'public'), { recursive: true });
  await writeFile(path.join(site.files_dir, 'public/logo.txt'), 'anchor');
  expect(await (await fetch(new URL('logo.txt', site.url))).text()).toBe('anchor');
  const code = await fetch(new URL('app.js', site.url));
  expect([code.headers.get('x-app'), (await code.text()).includes('createServer')]).toEqual(['yes', false]);
});

it('after a restart the next request is answered by a fresh process with the current code; the neighbour keeps its pid', async () => {
  const before = await ask(site);
  const beside = await ask(neighbour);
  await putApp(site, 'second');
  expect(await ask(site)).toMatchObject({ name: 'first', id: before.id });
  const { generation } = await host.client.restartApp(siteId, claim(2));
  const after = await ask(site);
  expect(after.name).toBe('second');
  expect(after.id).not.toBe(before.id);
  expect((await ask(neighbour)).id).toBe(beside.id);
  const probe = await host.client.probeSite(siteId, '/');
  expect(probe).toMatchObject({ http_status: 200, app_generation: generation + 1 });
  expect(await host.client.readApp(siteId)).toMatchObject({ has_app: true, generation: generation + 1 });
});

it('two restarts within one second give two fresh processes: the mtime grows by whole seconds', async () => {
  const pids = [(await ask(site)).id];
  for (const fence of [3, 4]) {
    await host.client.restartApp(siteId, claim(fence));
    pids.push((await ask(site)).id);
  }
  expect(new Set(pids).size).toBe(3);
});

it('a customer’s own touch of tmp/restart.txt does the same', async () => {
  const before = await ask(site);
  const file = path.join(site.files_dir, 'tmp/restart.txt');
  const later = Math.floor((await stat(file)).mtimeMs / 1_000) + 5;
  await utimes(file, later, later);
  expect((await ask(site)).id).not.toBe(before.id);
});

it('a request in flight ends on the old process, and none of those that come meanwhile fails', async () => {
  const slow = ask(site, 'slow');
  await new Promise((resolve) => setTimeout(resolve, 100));
  await host.client.restartApp(siteId, claim(5));
  const fresh = await Promise.all(Array.from({ length: 20 }, () => ask(site)));
  expect(new Set(fresh.map(({ id }) => id)).size).toBe(1);
  expect(fresh[0]?.id).not.toBe((await slow).id);
});

it('a restart names the old generation, and the fresh process has a greater one, beside many visitors', async () => {
  const restarts = Array.from({ length: 15 }, (_, index) => 20 + index);
  let isOver = false;
  const visit = async (): Promise<void> => {
    while (!isOver) await ask(site);
  };
  const visitors = Array.from({ length: 4 }, visit);
  const found: boolean[] = [];
  try {
    for (const fence of restarts) {
      const { generation } = await host.client.restartApp(siteId, claim(fence));
      const { app_generation: answered } = await host.client.probeSite(siteId, '/');
      found.push(answered !== null && answered > generation);
    }
  } finally {
    isOver = true;
    await Promise.all(visitors);
  }
  expect(found).toEqual(restarts.map(() => true));
});

it('a probe is told which process would answer also where the front page is a file of public/', async () => {
  await writeFile(path.join(site.files_dir, 'public/index.html'), 'the front page');
  const { generation } = await host.client.restartApp(siteId, claim(50));
  const probe = await host.client.probeSite(siteId, '/');
  expect([probe.http_status, (probe.app_generation ?? 0) > generation]).toEqual([200, true]);
  const page = await fetch(site.url);
  expect([await page.text(), page.headers.get('x-drydock-app-generation')]).toEqual(['the front page', null]);
  await rm(path.join(site.files_dir, 'public/index.html'));
});

it('an application that dies is back with the next request', async () => {
  const before = await ask(site);
  await fetch(new URL('crash', site.url)).catch(() => undefined);
  await until(async () => (await ask(site).catch(() => before)).id !== before.id, { timeoutMs: 30_000 });
  expect((await ask(site)).name).toBe(before.name);
});

it('an application that does not start answers 502, and starts once its code is mended', async () => {
  await writeFile(path.join(neighbour.files_dir, 'app.js'), 'throw new Error("no mast")');
  await host.client.restartApp(neighbourId, claim(6));
  expect((await fetch(neighbour.url)).status).toBe(502);
  expect(await readFile(path.join(host.config.SITES_DIR, 'live', neighbourId, 'app.log'), 'utf8')).toContain('no mast');
  await putApp(neighbour, 'mended');
  await until(async () => (await fetch(neighbour.url)).status === 200, { timeoutMs: 30_000 });
});

it('a site without an application refuses a restart', async () => {
  const { pid } = await host.client.readApp(neighbourId);
  if (pid === null) throw new Error('the application does not run');
  await rm(path.join(neighbour.files_dir, 'app.js'));
  process.kill(pid, 'SIGKILL');
  await until(async () => (await host.client.readApp(neighbourId)).pid === null, { timeoutMs: 30_000 });
  await expect(host.client.restartApp(neighbourId, claim(8))).rejects.toMatchObject({ code: 'no_app' });
  expect(await host.client.readApp(neighbourId)).toMatchObject({ has_app: false });
});

it('anything but a file in the place of restart.txt is refused at once, and delays nobody', async () => {
  const file = path.join(site.files_dir, 'tmp/restart.txt');
  await rm(file);
  execFileSync('mkfifo', [file]);
  const blocked = { code: 'restart_blocked' };
  for (const fence of [60, 61, 62, 63, 64])
    await expect(host.client.restartApp(siteId, claim(fence))).rejects.toMatchObject(blocked);
  // A pipe with a reader can be opened, but must still not count as a restart file.
  const reader = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  await expect(host.client.restartApp(siteId, claim(65))).rejects.toMatchObject(blocked);
  await reader.close();
  await rm(file);
  await host.client.restartApp(siteId, claim(66));
});

it('a link in the place of tmp or restart.txt leads nowhere: what it points to stays as it was', async () => {
  const outside = path.join(host.config.SITES_DIR, 'outside');
  await mkdir(outside);
  const tmp = path.join(site.files_dir, 'tmp');
  await rm(tmp, { recursive: true });
  await symlink(outside, tmp);
  await expect(host.client.restartApp(siteId, claim(90))).rejects.toMatchObject({ code: 'restart_blocked' });
  await rm(tmp);
  await mkdir(tmp);
  await writeFile(path.join(outside, 'victim'), 'untouched');
  await symlink(path.join(outside, 'victim'), path.join(tmp, 'restart.txt'));
  const { mtimeMs } = await stat(path.join(outside, 'victim'));
  await expect(host.client.restartApp(siteId, claim(91))).rejects.toMatchObject({ code: 'restart_blocked' });
  expect((await stat(path.join(outside, 'victim'))).mtimeMs).toBe(mtimeMs);
});
