/**
 * @processes
 * @root
 */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { PagePlaces } from '../content/page-places';

/*
 * All sites share one event loop. An organisation's connections may take only a bounded part of it, so each piece of
 * data needs a turn.
 */

const outside = Object.values(os.networkInterfaces())
  .flatMap((known) => known ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

/**
 * Replaces the limit for carried pieces, and records the organisation that asks for each turn. After `hold`, turns wait
 * until `release`.
 */
class Turns {
  private waiting: (() => void)[] | null = null;
  readonly takenBy: string[] = [];

  take(organisation: string, go: () => void): void {
    this.takenBy.push(organisation);
    if (this.waiting === null) go();
    else this.waiting.push(go);
  }

  hold(): void {
    this.waiting = [];
  }

  release(): void {
    const waiting = this.waiting ?? [];
    this.waiting = null;
    for (const go of waiting) go();
  }
}

const bytes = 200;
/**
 * Returns an application with a connection of each kind to the outside. For a visit such as /200 it sends 200 bytes
 * over each connection, one byte at a time.
 */
const source = (port: number): string => `const net = require('node:net');
  const { http_proxy: proxy } = Object.fromEntries(require('node:child_process').execFileSync('/usr/bin/env', { encoding: 'utf8' })
    .split('\\n').map((line) => line.split('=')));
  const target = '${outside}:${port}';
  const begin = (port, host, head) => new Promise((resolve) => {
    const socket = net.connect({ port, host, noDelay: true }, () => {
      if (head === '') return resolve(socket);
      socket.write(head);
      if (head.startsWith('CONNECT')) socket.once('data', () => resolve(socket));
      else resolve(socket);
    });
  });
  const open = Promise.all([
    begin(${port}, '${outside}', ''),
    begin(new URL(proxy).port, '127.0.0.1', 'CONNECT ' + target + ' HTTP/1.1\\r\\nHost: ' + target + '\\r\\n\\r\\n'),
    begin(new URL(proxy).port, '127.0.0.1', 'POST http://' + target + '/path HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 1000\\r\\n\\r\\n'),
  ]);
  require('node:http').createServer(async (request, answer) => {
    const sockets = await open;
    for (let said = 0; said < Number(request.url.slice(1)); said += 1) {
      for (const socket of sockets) socket.write('x');
      await new Promise(setImmediate);
    }
    answer.end('said');
  }).listen(1);`;

let host: TestHost;
let site: FilledSite;
const siteId = newSiteId();
const turns = new Turns();
const heard: string[] = [];
const server = createServer((socket) => {
  const at = heard.push('') - 1;
  socket
    .on('error', () => undefined)
    .on('data', (piece) => {
      heard[at] += piece.toString();
    });
});
beforeAll(async () => {
  host = await startHost(
    { ...(await hostConfig()), SITES_OUTGOING_ALLOW: `${outside}/32` },
    { places: new PagePlaces({ carried: turns }) },
  );
  site = await host.client.ensureSite(siteId, { domain: 'a.org', organisation_id: 'org-1' }, claim(1));
  server.listen(0, outside);
  await once(server, 'listening');
});
afterAll(async () => {
  turns.release();
  await clearHost(host, [siteId]);
  server.close();
});

const said = (): number => heard.join('').replaceAll(/[^x]/g, '').length;

test('a connection of an application passes one piece for each turn, with all bytes that came before', async () => {
  await writeFile(`${site.files_dir}/app.js`, source((server.address() as AddressInfo).port));
  const say = async (count: number): Promise<void> => {
    expect(await (await fetch(new URL(String(count), site.url))).text()).toBe('said');
  };
  await say(1);
  await until(() => Promise.resolve(said() === 3), { what: 'all three ways' });
  expect(heard.find((text) => text.startsWith('POST'))).toMatch(
    /^POST \/path HTTP\/1.1\r\nhost: a\r\n.*\r\nconnection: close\r\n\r\nx$/is,
  );
  // Each connection has already taken the turn for its next piece. The next byte uses this turn up.
  turns.hold();
  await say(1);
  await until(() => Promise.resolve(said() === 6), { what: 'a piece of each' });
  await say(bytes);
  await say(0);
  expect(said()).toBe(6);
  turns.takenBy.length = 0;
  turns.release();
  await until(() => Promise.resolve(said() === 6 + 3 * bytes), { what: 'all that was said' });
  expect(new Set(turns.takenBy)).toEqual(new Set(['org-1']));
  // The kernel has buffered all bytes by now, so six turns are enough: each of the three connections takes one for the
  // byte that was read ahead, and one for the rest.
  expect(turns.takenBy.length).toBeLessThan(bytes / 2);
});

test('so does a session of a site’s database, even before its login', async () => {
  const client = new pg.Client({ connectionString: site.database_url });
  await client.connect();
  await client.query('select 1');
  client.on('error', () => undefined); // pg knows of no query for the answers below.
  const { stream } = client.connection;
  turns.hold();
  turns.takenBy.length = 0;
  const newcomer = new pg.Client({ connectionString: site.database_url });
  const letIn = newcomer.connect().then(() => 'in');
  const statement = Buffer.from(`select '${'x'.repeat(bytes)}' as text\0`);
  const message = Buffer.concat([Buffer.from('Q'), Buffer.alloc(4), statement]);
  message.writeUInt32BE(statement.length + 4, 1);
  const answered = once(stream, 'data').then(() => 'answered');
  for (const byte of message) {
    stream.write(Buffer.from([byte]));
    await turnOfTheLoop();
  }
  const nothing = (await fetch(new URL('0', site.url))).text();
  expect(await Promise.race([letIn, answered, nothing])).toBe('said');
  // The session used one turn for its piece, and the newcomer used one turn for its first message.
  expect(turns.takenBy).toEqual(['org-1', 'org-1']);
  turns.release();
  expect(await Promise.all([letIn, answered])).toEqual(['in', 'answered']);
  await Promise.all([newcomer.end(), client.end()]);
});
