/** @processes */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { writeStartup } from '@drydock/agent/host';
import { type PostgresServer, startPostgres } from '@drydock/postgres';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { SitesCluster } from './sites-cluster';

/**
 * In these tests applications have no network of their own, so an application reaches every port of the machine. The
 * tests assume that the application knows the names of all roles.
 */
const actual = jest.requireActual<typeof import('@drydock/process')>('@drydock/process');
jest.mock('@drydock/process', () => ({
  ...jest.requireActual<typeof import('@drydock/process')>('@drydock/process'),
  detectIsolation: () => actual.detectIsolation(),
  detectBoxNetwork: () => Promise.resolve({ kind: 'machine', reason: 'a machine that cannot' }),
}));

let folder: string;
let cluster: PostgresServer;
let host: TestHost;
let sites: [FilledSite, FilledSite];
const ids = [newSiteId(), newSiteId()];

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-port-'));
  chmodSync(folder, 0o711);
  // The data folder is from an installation without a socket, and its path is too long for a socket.
  const options = { folder: path.join(folder, 'deep'.repeat(30)), isEphemeral: true };
  await (await startPostgres(options)).stop();
  cluster = await startPostgres({ ...options, account: 290_902, isSocketOnly: true });
  const config = {
    ...(await hostConfig()),
    SITES_DATABASE_URL: cluster.adminUrl,
    SITES_DATABASE_SOCKET: cluster.socketFolder ?? undefined,
  };
  host = await startHost(config);
  const make = (id: string) => host.client.ensureSite(id, { domain: `${id}.example.org` }, claim(1));
  sites = await Promise.all([make(ids[0] ?? ''), make(ids[1] ?? '')]);
});
afterAll(async () => {
  await clearHost(host, ids);
  await cluster.stop();
  if (cluster.socketFolder !== null) rmSync(cluster.socketFolder, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

interface Login {
  port: number;
  user: string;
  database: string;
}

/**
 * The source of a function that reads Postgres' first answer to a login: the code of a refusal, or the request for a
 * password. The test runs it inside app.js.
 */
const firstWord = `({ port, user, database }) => new Promise((resolve) => {
  const body = Buffer.from('user\\0' + user + '\\0database\\0' + database + '\\0\\0');
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length + 8, 0);
  head.writeUInt32BE(196608, 4);
  const socket = require('net').connect(port, '127.0.0.1', () => socket.write(Buffer.concat([head, body])));
  socket.on('error', (error) => resolve(error.code)).on('data', (data) => {
    resolve(data[0] === 0x52 ? 'asks for a password' : /C([0-9A-Z]{5})/.exec(data.toString('latin1'))[1]);
    socket.destroy();
  });
})`;

const loginOf = (site: FilledSite): Login => {
  const { port, username, pathname } = new URL(site.database_url);
  return { port: Number(port), user: username, database: pathname.slice(1) };
};

test('an application finds no port of the cluster, and reaches its database by the site’s address', async () => {
  const [own, other] = sites;
  const rows = await runSql(
    cluster.adminUrl,
    `select datname as name from pg_database where datname like '${loginOf(own).user}%'`,
  );
  const [{ name: database }] = z.tuple([z.object({ name: z.string() })]).parse(rows);
  const logins = {
    ownRoleAtThePort: { ...loginOf(own), port: cluster.port, database },
    anothersRoleAtThePort: { ...loginOf(other), port: cluster.port, database },
    superuserAtThePort: { port: cluster.port, user: 'postgres', database: 'postgres' },
    ownRoleAtItsAddress: loginOf(own),
    anothersRoleAtItsAddress: { ...loginOf(own), user: loginOf(other).user },
  };
  const source = `const ask = ${firstWord};
    const files = () => ${JSON.stringify([cluster.socketFolder])}.filter((name) => require('fs').existsSync(name));
    require('http').createServer(async (_, answer) => {
      const entries = await Promise.all(Object.entries(${JSON.stringify(logins)}).map(async ([name, login]) => [name, await ask(login)]));
      answer.end(JSON.stringify({ ...Object.fromEntries(entries), files: files() }));
    }).listen(1);`;
  await writeFile(path.join(own.files_dir, 'app.js'), source);
  const told: unknown = await (await fetch(own.url)).json();
  expect(told).toEqual({
    ownRoleAtThePort: 'ECONNREFUSED',
    anothersRoleAtThePort: 'ECONNREFUSED',
    superuserAtThePort: 'ECONNREFUSED',
    ownRoleAtItsAddress: 'asks for a password',
    anothersRoleAtItsAddress: '28000',
    files: [],
  });
});

test('connections that name the superuser without proving it take no place of others', async () => {
  const [site] = sites;
  const sockets = Array.from({ length: 300 }, () => connect(cluster.port, '127.0.0.1').on('error', () => undefined));
  for (const socket of sockets) socket.write(writeStartup(196_608, new Map([['user', 'postgres']])));
  const isSettled = (socket: Socket): boolean => socket.destroyed || socket.bytesRead > 0;
  try {
    await until(() => sockets.every(isSettled));
    expect(await runSql(site.database_url, 'select 1 as n')).toEqual([{ n: 1 }]);
    expect(await runSql(cluster.adminUrl, 'select 1 as n')).toEqual([{ n: 1 }]);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test('pages, customers’ sessions, probes and counts work through the socket', async () => {
  const [, site] = sites;
  await runSql(site.database_url, 'create table sold (n int)');
  await runSql(site.database_url, 'insert into sold values (1), (2)');
  await writeFile(path.join(site.files_dir, 'page.html'), '<?sql select count(*) from sold ?>');
  expect(await (await fetch(new URL('page.html', site.url))).text()).toBe('2');
  expect(await host.client.probeSite(ids[1] ?? '', '/page.html')).toMatchObject({ http_status: 200, sql_ok: true });
  expect(await host.client.countRows(ids[1] ?? '', { schema: 'public', name: 'sold' }, claim(2))).toBe(2);
});

test('a session of a site writes 1 GB of temporary files at most, and cannot lift the limit', async () => {
  const [site] = sites;
  const read = (): Promise<unknown> => runSql(site.database_url, 'show temp_file_limit');
  expect(await read()).toEqual([{ temp_file_limit: '1GB' }]);
  const lifts = [
    'set temp_file_limit = -1',
    'alter role current_user set temp_file_limit = -1',
    'alter role current_user reset temp_file_limit',
  ];
  for (const lift of lifts) await expect(runSql(site.database_url, lift)).rejects.toMatchObject({ code: '42501' });
  await runSql(site.database_url, 'alter role current_user reset all');
  expect(await read()).toEqual([{ temp_file_limit: '1GB' }]);
});

test('only the server’s account can write the socket’s folder, and docker-compose has the same rules', () => {
  expect(statSync(cluster.socketFolder ?? '').mode & 0o777).toBe(0o711);
  const rules = path.resolve(__dirname, '../../../../infra/postgres/sites-pg_hba.conf');
  const written = readFileSync(path.join(cluster.dataDir, '../pg_hba.conf'), 'utf8');
  expect(readFileSync(rules, 'utf8')).toBe(written);
});

test('a host that starts before its Postgres waits for it, and does not wait with a wrong password', async () => {
  const options = { folder: path.join(folder, 'late'), isEphemeral: true };
  const first = await startPostgres(options);
  const { adminUrl } = first;
  await first.stop();
  const early = new SitesCluster(adminUrl, null, 'early');
  const waiting = early.waitForServer();
  const late = await startPostgres({ ...options, port: Number(new URL(adminUrl).port) });
  await waiting;
  await early.close();
  const wrongUrl = new URL(adminUrl);
  wrongUrl.password = 'wrong';
  const wrong = new SitesCluster(wrongUrl.href, null, 'wrong');
  await expect(wrong.waitForServer()).rejects.toMatchObject({ code: '28P01' });
  await wrong.close();
  await late.stop();
});
