/**
 * @processes
 * @root
 */
import { once } from 'node:events';
import { readFileSync, realpathSync } from 'node:fs';
import { cp, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';

/**
 * This machine's IPv4 address that is not loopback. The site agent's setting SITES_OUTGOING_ALLOW lets applications
 * connect to this address.
 */
const outside = Object.values(os.networkInterfaces())
  .flatMap((known) => known ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

let host: TestHost;
let site: FilledSite;
let neighbour: FilledSite;
const [siteId, neighbourId] = [newSiteId(), newSiteId()];
const servers: Server[] = [];
let generation = 1;

beforeAll(async () => {
  host = await startHost({ ...(await hostConfig()), SITES_OUTGOING_ALLOW: `${outside}/32` });
  site = await host.client.ensureSite(siteId, { domain: 'attacker.org' }, claim(1));
  neighbour = await host.client.ensureSite(neighbourId, { domain: 'victim.org' }, claim(1));
});
afterAll(async () => {
  for (const server of servers) server.close();
  await clearHost(host, [siteId, neighbourId]);
});

/** Runs `work`, the body of an async function, in the application. Resolves with its result. */
async function inApp(work: string): Promise<unknown> {
  const source = `
    const [net, http, tls, dns, fs, child] = ['net', 'http', 'tls', 'dns', 'fs', 'child_process'].map((name) => require(name));
    const attempt = (options) => new Promise((resolve) => {
      const socket = net.connect(options, () => { socket.destroy(); resolve('connected'); });
      socket.once('error', (error) => resolve(error.code));
    });
    http.createServer(async (_, answer) => {
      const result = await (async () => { ${work} })().catch((error) => ({ failed: error.code ?? error.cause?.code ?? error.message }));
      answer.end(JSON.stringify(result ?? null));
    }).listen(3000)`;
  await writeFile(path.join(site.files_dir, 'app.js'), source);
  generation += 1;
  await host.client.restartApp(siteId, claim(generation));
  return (await fetch(site.url)).json();
}

/** Listens until the end of the tests. Returns the port. */
async function listen<S extends Server>(server: S, where: string | { path: string } = outside ?? ''): Promise<number> {
  servers.push(server);
  if (typeof where === 'string') server.listen(0, where);
  else server.listen(where);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const greeting = (socket: Socket): void => void socket.on('error', () => undefined).end('welcome');

describe('the network of an application', () => {
  it('leads to no port of the machine: no Postgres, no other site, not the agent', async () => {
    const urls = [readSharedCluster().adminUrl, neighbour.url, neighbour.database_url, host.controlUrl];
    const ports = urls.map((url) => Number(new URL(url).port));
    const answers = await inApp(
      `return Promise.all(${JSON.stringify(ports)}.map((port) => attempt({ port, host: '127.0.0.1' })))`,
    );
    // The first port is that of the cluster that holds the databases of all sites in this test.
    expect(answers).toEqual(ports.map(() => 'ECONNREFUSED'));
  });

  it('leads to no socket of the machine that has no file', async () => {
    const name = `\0drydock-test-${process.pid}`;
    await listen(createServer(greeting), { path: name });
    expect(await inApp(`return attempt({ path: ${JSON.stringify(name)} })`)).toBe('ECONNREFUSED');
  });

  it('has no port of the machine to take', async () => {
    const ports = await Promise.all(Array.from({ length: 20 }, () => listen(createServer(greeting), '0.0.0.0')));
    // The box has its own network, so ports that are used on the machine are free in it.
    const taken = await inApp(`const taken = [];
      for (const port of ${JSON.stringify(ports)}) await new Promise((next) => {
        net.createServer().listen(port, '0.0.0.0', () => { taken.push(port); next(); }).on('error', next);
      });
      return taken`);
    expect(taken).toEqual(ports);
  });

  it('shows nothing of the machine in /proc/net', async () => {
    const port = await listen(createServer(greeting), '127.0.0.1');
    const seen = (await inApp(
      `return [fs.readFileSync('/proc/net/tcp', 'utf8'), fs.readFileSync('/proc/net/dev', 'utf8')]`,
    )) as string[];
    expect(seen.map((text) => text.includes(`:${port.toString(16).toUpperCase()}`))).toEqual([false, false]);
    expect(seen[1]?.match(/^ *\w+:/gm)).toEqual(['    lo:']);
  });

  it('has the site’s database at the address that it is told', async () => {
    await giveModule('pg', require.resolve('pg/package.json'));
    const answer = await inApp(`const { Client } = require('pg');
      const client = new Client({ connectionString: process.env.DATABASE_URL });
      await client.connect();
      const { rows } = await client.query('select 6 * 7 as n');
      await client.end();
      return rows`);
    expect(answer).toEqual([{ n: 42 }]);
  });
});

/** Copies a package and its dependencies to where the application finds them. */
async function giveModule(name: string, manifest: string): Promise<void> {
  const file = realpathSync(manifest);
  await cp(path.dirname(file), path.join(site.files_dir, 'node_modules', name), { recursive: true });
  const { dependencies = {} } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies?: Record<string, string> };
  for (const needed of Object.keys(dependencies))
    await giveModule(needed, path.join(path.dirname(file), '..', needed, 'package.json'));
}

describe('what an application connects to outside', () => {
  it('answers as ever: a socket, HTTP, fetch and TLS', async () => {
    const http = await listen(
      createHttpServer((request, response) => response.end(`${request.method} ${request.url}`)),
    );
    const first = await listen(createServer(greeting));
    const psk = { ciphers: 'PSK', maxVersion: 'TLSv1.2' as const };
    const key = Buffer.alloc(16, 7);
    const secure = await listen(createTlsServer({ ...psk, pskCallback: () => key }, (socket) => socket.end('sealed')));
    const answer =
      await inApp(`const [http, first, secure] = ${JSON.stringify([http, first, secure])}; const host = '${outside}';
      const read = async (stream) => { let text = ''; for await (const part of stream) text += part; return text; };
      const got = await new Promise((resolve, reject) => require('http').get({ host, port: http, path: '/a' }, resolve).on('error', reject));
      const options = { host, port: secure, ciphers: 'PSK', maxVersion: 'TLSv1.2', checkServerIdentity: () => undefined };
      const sealed = tls.connect({ ...options, pskCallback: () => ({ psk: Buffer.alloc(16, 7), identity: 'app' }) });
      const fetched = await fetch('http://' + host + ':' + http + '/b', { method: 'POST', body: 'x'.repeat(300000) });
      return [await read(net.connect(first, host)), await read(got), await fetched.text(), await read(sealed)]`);
    expect(answer).toEqual(['welcome', 'GET /a', 'POST /b', 'sealed']);
  });

  it('is reached by programs that the application starts, through their proxy', async () => {
    const port = await listen(createHttpServer((request, response) => response.end(`plain ${request.url}`)));
    const program = `const { hostname, port } = new URL(process.env.http_proxy);
      const where = { hostname, port, agent: false };
      const tunnel = require('http').request({ ...where, method: 'CONNECT', path: '${outside}:${port}' }).on('connect', (_, socket) => {
        socket.end('GET /c HTTP/1.0\\\\r\\\\n\\\\r\\\\n').on('data', (part) => process.stdout.write(part));
      }).end();
      require('http').get({ ...where, path: 'http://${outside}:${port}/d' }, (answer) => answer.pipe(process.stdout));`;
    const answer = await inApp(`const program = ${JSON.stringify(program)}.replaceAll('\\\\\\\\', '\\\\');
      const run = require('util').promisify(child.execFile);
      return [(await run(process.execPath, ['-e', program])).stdout, child.execFileSync('/usr/bin/env', { encoding: 'utf8' })]`);
    const [printed, env] = answer as [string, string];
    expect(printed).toContain('plain /c');
    expect(printed).toContain('plain /d');
    expect(env).toContain('https_proxy=http://127.0.0.1:');
  });

  it('gives answers unchanged, even those that Node can read but not write', async () => {
    const bad = await listen(
      createServer((socket) => void socket.on('error', () => undefined).end('HTTP/1.1 000 Nothing\r\n\r\n')),
    );
    const answer =
      await inApp(`const { hostname, port } = new URL(/^http_proxy=(.*)$/m.exec(child.execFileSync('/usr/bin/env', { encoding: 'utf8' }))[1]);
      return new Promise((resolve) => {
        const asked = http.get({ hostname, port, agent: false, path: 'http://${outside}:${bad}/' }, ({ statusCode }) => resolve(statusCode));
        asked.on('error', ({ code }) => resolve(code));
      });`);
    expect(answer).toBe(0);
    expect(await (await fetch(site.url)).json()).toBe(0);
  });

  it('is neither private, nor link-local, nor the machine itself, by whatever way', async () => {
    const refused = [
      '10.0.0.1',
      '172.16.0.1',
      '192.168.0.1',
      '169.254.169.254',
      '100.64.0.1',
      'fd00::1',
      'fe80::1',
      '::ffff:10.0.0.1',
    ];
    const answer = await inApp(`const env = child.execFileSync('/usr/bin/env', { encoding: 'utf8' });
      const { hostname, port } = new URL(/^https_proxy=(.*)$/m.exec(env)[1]);
      const proxied = (target) => new Promise((resolve) => {
        const asked = http.request({ hostname, port, agent: false, method: 'CONNECT', path: target });
        asked.on('connect', ({ statusCode }, socket) => { socket.destroy(); resolve(statusCode); }).on('error', (error) => resolve(error.code)).end();
      });
      return [await Promise.all(${JSON.stringify(refused)}.map((host) => attempt({ host, port: 80 }))),
        await Promise.all(['127.0.0.1:${new URL(host.controlUrl).port}', '[::1]:80', '0.0.0.0:80', '2130706433:80', '10.0.0.1:80'].map(proxied))]`);
    expect(answer).toEqual([refused.map(() => 'EACCES'), [403, 403, 403, 403, 403]]);
  });

  it('fails like a direct connection: nobody listens, no such name', async () => {
    const closed = createServer();
    const port = await listen(closed);
    closed.close();
    await once(closed, 'close');
    const answer = await inApp(`const lookup = (name) => dns.promises.lookup(name).catch((error) => error.code);
      return [await attempt({ host: '${outside}', port: ${port} }), await lookup('nothing.invalid'), await lookup('127.0.0.1')]`);
    expect(answer).toEqual(['ECONNREFUSED', 'ENOTFOUND', { address: '127.0.0.1', family: 4 }]);
  });

  it('is limited: the sixty-fifth connection is refused until another one has ended', async () => {
    const port = await listen(createServer((socket) => void socket.on('error', () => undefined)));
    const answer = await inApp(`const open = [];
      const connect = () => new Promise((resolve) => {
        const socket = net.connect(${port}, '${outside}', () => { open.push(socket); resolve('connected'); });
        socket.once('error', (error) => resolve(error.code));
      });
      const first = []; for (let n = 0; n < 64; n += 1) first.push(await connect());
      const more = await connect();
      open.pop().destroy();
      let again; do again = await connect(); while (again !== 'connected');
      return [new Set(first).size, more, again]`);
    expect(answer).toEqual([1, 'EAGAIN', 'connected']);
  });
});
