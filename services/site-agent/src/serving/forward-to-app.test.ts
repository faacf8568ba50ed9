/**
 * @processes
 * @root
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import http from 'node:http';
import { connect, type Socket } from 'node:net';
import { until } from '@drydock/testing/wait';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { PagePlaces } from '../content/page-places';

/* Tests how an application's answers reach its visitors, in whatever pieces they come. */

let host: TestHost;
let site: FilledSite;
let neighbour: FilledSite;
const [siteId, neighbourId] = [newSiteId(), newSiteId()];
const visitsOfAll = 8;

const source = `
const http = require('node:http');
const seen = { connections: 0, left: 0 };
const waiting = [];
const pages = {
  '/seen': (request, response) => response.end(JSON.stringify(seen)),
  '/head': (request, response) => response.writeHead(200, 'Fine', { 'Content-Length': '7', 'X-Twice': ['a', 'b'] }).end(),
  '/none': (request, response) => response.writeHead(204).end(),
  '/echo': (request, response) => request.pipe(response),
  '/early': (request, response) => response.writeHead(413, { Connection: 'close' }).end('too much'),
  '/large': (request, response) => response.end(Buffer.alloc(3_000_001, 'x')),
  '/bytes': (request, response) => { for (let n = 0; n < 20_000; n += 1) response.write('x'); response.end('.'); },
  '/lone': (request, response) => response.setHeader('Connection', 'close').end('alone'),
  '/cut': (request, response) => { response.write('half'); setTimeout(() => response.destroy(), 50); },
  '/other': (request, response) => response.socket.end('HTTP/1.1 101 Other\\r\\nConnection: Upgrade\\r\\nUpgrade: other\\r\\n\\r\\n'),
  '/quiet': (request, response) => { response.flushHeaders(); waiting.push(response); response.once('close', () => { seen.left += 1; }); },
  '/event': (request, response) => { for (const one of waiting) one.write('event ' + request.headers['x-number'] + '\\n'); response.end(); },
  '/method': (request, response) => request.on('data', () => undefined).on('end', () => response.end(request.method + request.url)),
};
http.createServer((request, response) => pages[request.url](request, response)).on('connection', () => { seen.connections += 1; }).listen(1);
`;

beforeAll(async () => {
  host = await startHost(await hostConfig(), { places: new PagePlaces({ visits: visitsOfAll }) });
  site = await host.client.ensureSite(siteId, { domain: 'a.org', organisation_id: 'org-1' }, claim(1));
  neighbour = await host.client.ensureSite(neighbourId, { domain: 'b.org', organisation_id: 'org-2' }, claim(1));
  for (const { files_dir: folder } of [site, neighbour]) await writeFile(`${folder}/app.js`, source);
});
afterAll(() => clearHost(host, [siteId, neighbourId]));

const url = (page: string, of = site): URL => new URL(page, of.url);
const seen = async (): Promise<{ connections: number; left: number }> =>
  (await (await fetch(url('seen'))).json()) as { connections: number; left: number };

/** Sends these bytes unchanged. Resolves with everything that is received until the connection closes. */
async function sayRaw(text: string): Promise<string> {
  const socket = connect(Number(url('').port), '127.0.0.1', () => socket.write(text));
  let said = '';
  socket.on('data', (part: Buffer) => {
    said += part.toString('latin1');
  });
  await once(socket, 'close');
  return said;
}

/** Visits /quiet. `text` returns what has arrived so far. */
async function stay(of = site): Promise<{ status: number | undefined; text(): string; leave(): void }> {
  const request = http.get(url('quiet', of), { agent: false }).on('error', () => undefined);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  let text = '';
  response
    .on('error', () => undefined)
    .on('data', (part: Buffer) => {
      text += part.toString();
    });
  return { status: response.statusCode, text: () => text, leave: () => request.destroy() };
}

test('heads pass unchanged: with a length but no body, with a repeated name, without any body', async () => {
  const head = await fetch(url('head'), { method: 'HEAD' });
  expect([head.status, head.statusText, head.headers.get('content-length'), head.headers.get('x-twice')]).toEqual([
    200,
    'Fine',
    '7',
    'a, b',
  ]);
  const none = await fetch(url('none'));
  expect([none.status, await none.text()]).toEqual([204, '']);
});

test('bodies of any size pass whole, both ways', async () => {
  const sent = randomBytes(3_000_001);
  const echoed = await fetch(url('echo'), { method: 'POST', body: sent });
  expect(Buffer.from(await echoed.arrayBuffer()).equals(sent)).toBe(true);
  expect(await (await fetch(url('large'))).text()).toBe('x'.repeat(3_000_001));
  expect(await (await fetch(url('bytes'))).text()).toBe(`${'x'.repeat(20_000)}.`);
});

test('a body in chunks is never taken for a request, whatever its method', async () => {
  const inner = 'GET /large HTTP/1.1\r\nHost: a\r\n\r\n';
  const chunk = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
  const said = await sayRaw(
    `GET /method HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`,
  );
  expect(said).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*GET\/method/);
  expect(await (await fetch(url('method'))).text()).toBe('GET/method');
});

test('a client that waits for 100 Continue gets it, and a refusal arrives before the body has come', async () => {
  const head = 'Host: a\r\nConnection: close\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n';
  expect(await sayRaw(`POST /echo HTTP/1.1\r\n${head}mast`)).toMatch(
    /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK[\s\S]*mast/,
  );
  const early = await sayRaw('POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nthe beginning');
  expect(early).toMatch(/^HTTP\/1\.1 413 [\s\S]*too much/);
});

test('pieces of an answer arrive at once, and the application learns that its visitor has left', async () => {
  const visitor = await stay();
  for (const number of [1, 2, 3]) {
    await fetch(url('event'), { headers: { 'x-number': String(number) } });
    await until(() => visitor.text().endsWith(`event ${number}\n`), { what: 'the event' });
  }
  const { left } = await seen();
  expect(visitor.text()).toBe('event 1\nevent 2\nevent 3\n');
  visitor.leave();
  await until(async () => (await seen()).left === left + 1, { what: 'the application hears of it' });
});

test('an answer that the application breaks off is seen to be cut, and the next one comes', async () => {
  await expect(fetch(url('cut')).then((response) => response.text())).rejects.toThrow('terminated');
  expect(await (await fetch(url('none'))).text()).toBe('');
});

test('an answer that changes the protocol counts as no answer', async () => {
  expect((await fetch(url('other'))).status).toBe(502);
  expect((await fetch(url('none'))).status).toBe(204);
});

test('connections to the application are used again, and made anew where it closes them', async () => {
  const before = await seen();
  for (let number = 0; number < 5; number += 1) await fetch(url('none')).then((response) => response.text());
  expect((await seen()).connections).toBe(before.connections);
  for (let number = 0; number < 5; number += 1) expect(await (await fetch(url('lone'))).text()).toBe('alone');
  expect((await seen()).connections).toBeGreaterThanOrEqual(before.connections + 5);
});

test('one visitor more than an organisation’s share gets 503, and those of others are answered', async () => {
  const visitors = [];
  for (let number = 0; number < visitsOfAll / 2; number += 1) visitors.push(await stay());
  expect(visitors.map(({ status }) => status)).toEqual(visitors.map(() => 200));
  const refused = await fetch(url('none'));
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
  expect((await fetch(url('none', neighbour))).status).toBe(204);
  for (const { leave } of visitors) leave();
  await until(async () => (await fetch(url('none'))).status === 204, { what: 'a place again' });
});

test('requests that come without waiting for an answer are answered in order', async () => {
  const asked = ['/event', '/none'].map((page) => `GET ${page} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const said = await sayRaw(`${asked.join('')}HEAD /head HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(said.match(/^HTTP\/1\.1 .*(?=\r)/gm)).toEqual([
    'HTTP/1.1 200 OK',
    'HTTP/1.1 204 No Content',
    'HTTP/1.1 200 Fine',
  ]);
});

test('visitors who ask several times without waiting for an answer, and leave, give all their places back', async () => {
  const ofOrganisation = visitsOfAll / 2;
  const asked = 'GET /quiet HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(ofOrganisation);
  const sockets: Socket[] = [];
  const isFull = async (): Promise<boolean> => {
    const socket = connect(Number(url('').port), '127.0.0.1', () => socket.write(asked));
    sockets.push(socket);
    await once(socket, 'data');
    return (await fetch(url('none'))).status === 503;
  };
  await until(isFull, { what: 'no place is left' });
  for (const socket of sockets) socket.destroy();
  const haveAllAPlace = async (): Promise<unknown[] | null> => {
    const visitors = await Promise.all(Array.from({ length: ofOrganisation }, () => stay()));
    for (const { leave } of visitors) leave();
    const answers = visitors.map(({ status }) => status);
    return answers.includes(503) ? null : answers;
  };
  expect(await until(haveAllAPlace, { what: 'all places again' })).toEqual([200, 200, 200, 200]);
});

test('the end of the content child costs its own visitors only: application and neighbour go on', async () => {
  const { pid } = await host.client.readApp(siteId);
  const own = await stay();
  const other = await stay(neighbour);
  for (const child of contentChildren(site)) process.kill(child, 'SIGKILL');
  await until(async () => (await fetch(url('none'))).status === 204, { what: 'a fresh process between' });
  expect((await host.client.readApp(siteId)).pid).toBe(pid);
  await fetch(url('event', neighbour), { headers: { 'x-number': '4' } });
  await until(() => other.text() === 'event 4\n', { what: 'the neighbour’s event' });
  expect(own.text()).toBe('');
  other.leave();
});

/** Returns the children of this process that serve the site's files: of each box, its outermost process. */
function contentChildren({ files_dir: folder }: FilledSite): number[] {
  const all = readdirSync('/proc/self/task').flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' '),
  );
  const pids = all.filter((text) => text !== '').map(Number);
  return pids.filter((pid) => {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return line.includes('content/server.js') && line.includes(folder);
  });
}
