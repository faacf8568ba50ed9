import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Newcomers, SerialQueue, writeFatal, writeStartup } from '@drydock/agent/host';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { EndpointSession, PostgresStart } from './endpoint-session';
import { SitesCluster } from './sites-cluster';

let host: TestHost;
let site: FilledSite;
let other: FilledSite;
const [siteId, otherId] = [newSiteId(), newSiteId()];
beforeAll(async () => {
  host = await startHost(await hostConfig());
  site = await host.client.ensureSite(siteId, { domain: 'one.org' }, claim(1));
  other = await host.client.ensureSite(otherId, { domain: 'two.org' }, claim(1));
});
afterAll(() => clearHost(host, [siteId, otherId]));

const changed = (url: string, change: (parts: URL) => void): string => {
  const parts = new URL(url);
  change(parts);
  return parts.href;
};
async function openSession(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
const codeOf = (url: string): Promise<unknown> =>
  runSql(url, 'select 1').then(
    () => 'connected',
    (error: { code?: string }) => error.code,
  );

test('the address is the one that a customer is told, and the role can do nothing beyond its databases', async () => {
  expect(new URL(site.database_url)).toMatchObject({
    hostname: '127.0.0.1',
    pathname: '/site',
    username: expect.stringMatching(/^site_[0-9a-f]{32}$/),
  });
  const [role] = await runSql(
    site.database_url,
    'select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls as powerful from pg_roles where rolname = current_user',
  );
  expect(role).toEqual({ powerful: false });
  await runSql(site.database_url, 'create table mine (a int); create extension pg_trgm');
  await expect(runSql(site.database_url, "copy (select 1) to program 'true'")).rejects.toMatchObject({ code: '42501' });
});

test('a site’s role reaches no other database, neither through the endpoint nor past it', async () => {
  expect(await codeOf(changed(site.database_url, (url) => (url.pathname = '/postgres')))).toBe('3D000');
  const direct = (await host.client.placeOfRelease(siteId, 'initial')).database_url;
  const foreign = new URL((await host.client.placeOfRelease(otherId, 'initial')).database_url).pathname;
  expect(await codeOf(direct)).toBe('connected');
  for (const database of ['/postgres', '/template1', foreign]) {
    expect(await codeOf(changed(direct, (url) => (url.pathname = database)))).toBe('42501');
  }
  expect(await codeOf(changed(direct, (url) => (url.pathname = '/template0')))).not.toBe('connected');
});

test('the names that every role of the cluster can read contain no site’s id', async () => {
  const names = await runSql<{ name: string }>(
    site.database_url,
    'select rolname as name from pg_roles union all select datname from pg_database',
  );
  expect(names.length).toBeGreaterThan(5);
  for (const id of [siteId, otherId])
    for (const { name } of names) expect(name.replaceAll('-', '')).not.toContain(id.replaceAll('-', '').slice(0, 8));
});

test('another role, a wrong password and replication are refused', async () => {
  expect(await codeOf(changed(site.database_url, (url) => (url.username = new URL(other.database_url).username)))).toBe(
    '28000',
  );
  expect(await codeOf(changed(site.database_url, (url) => (url.username = 'postgres')))).toBe('28000');
  expect(await codeOf(changed(site.database_url, (url) => (url.password = 'wrong')))).toBe('28P01');
  expect(await codeOf(changed(site.database_url, (url) => url.searchParams.set('replication', 'database')))).toBe(
    '28000',
  );
});

test('a probe runs no function of the site’s, even where the site has put its own before the server’s', async () => {
  const { username: role } = new URL(site.database_url);
  await runSql(
    site.database_url,
    `create schema own;
    create function own.step(n int) returns int language plpgsql as $$ begin raise exception 'code of the site'; end $$;
    create aggregate own.count(*) (sfunc = own.step, stype = int, initcond = '0');
    alter role ${role} set search_path = own, pg_catalog`,
  );
  await expect(runSql(site.database_url, 'select count(*) from pg_class')).rejects.toThrow('code of the site');
  const probed = await host.client.probeSite(siteId, '/');
  await runSql(site.database_url, `alter role ${role} reset search_path; drop schema own cascade`);
  expect(probed).toMatchObject({ sql_ok: true, sql_answered: true });
});

/** Connects as a user and never sends a password. */
async function askAndStaySilent(url: string): Promise<net.Socket> {
  const { port, username } = new URL(url);
  const socket = net.connect(Number(port), '127.0.0.1').on('error', () => undefined);
  socket.write(
    writeStartup(
      196_608,
      new Map([
        ['user', username],
        ['database', 'site'],
      ]),
    ),
  );
  await once(socket, 'data');
  return socket;
}

test('sessions that never authenticate take no place: of a hundred the oldest end, and the owner gets in', async () => {
  const silent: net.Socket[] = [];
  for (let at = 0; at < 100; at += 1) silent.push(await askAndStaySilent(site.database_url));
  const own = await Promise.all(Array.from({ length: 20 }, () => openSession(site.database_url)));
  expect(await codeOf(site.database_url)).toBe('53300');
  await Promise.all(own.map((client) => client.end()));
  await until(async () => (await codeOf(site.database_url)) === 'connected');
  for (const socket of silent) socket.destroy();
});

test('a session that does not authenticate within three seconds is ended, an authenticated one is not', async () => {
  const { DRYDOCK_TIMEOUT_SCALE: scale } = process.env;
  process.env['DRYDOCK_TIMEOUT_SCALE'] = '1';
  try {
    const own = await openSession(site.database_url);
    const silent = await askAndStaySilent(site.database_url);
    await once(silent, 'close');
    expect((await own.query('select 1 as n')).rows).toEqual([{ n: 1 }]);
    await own.end();
  } finally {
    process.env['DRYDOCK_TIMEOUT_SCALE'] = scale;
  }
});

test('a statement ends soon after its client has gone, however long it would take, and its place is free', async () => {
  const clients = await Promise.all(Array.from({ length: 20 }, () => openSession(site.database_url)));
  for (const client of clients) {
    client.query('set client_connection_check_interval = 0; select pg_sleep(3600)').catch(() => undefined);
  }
  const role = new URL(site.database_url).username;
  const sleeping = async (): Promise<number> => {
    const sql = "select 1 from pg_stat_activity where usename = $1 and wait_event = 'PgSleep'";
    return (await runSql(readSharedCluster().adminUrl, sql, [role])).length;
  };
  await until(async () => (await sleeping()) === clients.length);
  for (const client of clients) client.connection.stream.destroy();
  await until(async () => (await sleeping()) === 0, { what: 'the end of the backends' });
  await until(async () => (await codeOf(site.database_url)) === 'connected');
  expect(await sleeping()).toBe(0);
});

test('a running query can be cancelled through the endpoint of its site, and through no other', async () => {
  const client = new pg.Client({ connectionString: site.database_url });
  await client.connect();
  const sleeping = client.query('select pg_sleep(30)').catch((error: { code?: string }) => error.code);
  const active = "select 1 from pg_stat_activity where state = 'active' and wait_event = 'PgSleep'";
  await until(async () => (await runSql(site.database_url, active)).length > 0, { timeoutMs: 30_000 });
  const packet = Buffer.alloc(16);
  packet.writeUInt32BE(16, 0);
  packet.writeUInt32BE(80_877_102, 4);
  packet.writeUInt32BE(Number(Reflect.get(client, 'processID')), 8);
  packet.writeInt32BE(Number(Reflect.get(client, 'secretKey')), 12);
  const send = async (url: string): Promise<void> => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
    socket.end(packet);
    await once(socket, 'close');
  };
  // Postgres handles a cancel before it closes the cancel's connection, so after `send` an effect would be visible.
  await send(other.database_url);
  expect(await runSql(site.database_url, active)).toHaveLength(1);
  await send(site.database_url);
  expect(await sleeping).toBe('57014');
  await client.end();
});

test('encryption is declined as the protocol says, and invalid bytes end the connection', async () => {
  const port = Number(new URL(site.database_url).port);
  const ssl = net.connect(port, '127.0.0.1');
  ssl.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
  const [answer] = await once(ssl, 'data');
  expect(String(answer)).toBe('N');
  ssl.destroy();
  for (const rubbish of [
    'GET / HTTP/1.1\r\n\r\n',
    '\0\0\0\x08\x04\xd2\x16.',
    '\0\0\0\x09\0\x03\0\0x',
    '\xff\xff\xff\xff\0\x03\0\0',
  ]) {
    const socket = net.connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(Buffer.from(rubbish, 'latin1'));
    await once(socket, 'close');
  }
  expect(await codeOf(site.database_url)).toBe('connected');
});

test('a site is removed whole, even if its database is a template and another site has given it a right', async () => {
  const { adminUrl } = readSharedCluster();
  const ids = { giver: newSiteId(), template: newSiteId() };
  const giver = await host.client.ensureSite(ids.giver, { domain: 'giver.org' }, claim(1));
  const template = await host.client.ensureSite(ids.template, { domain: 'template.org' }, claim(1));
  const { username: role } = new URL(template.database_url);
  await runSql(
    template.database_url,
    `do $$ begin execute format('alter database %I is_template true', current_database()); end $$`,
  );
  await runSql(giver.database_url, `create table given (a int); grant select on given to ${role}`);
  await host.client.destroySite(ids.template, claim(2));
  const left = `select datname as name from pg_database where datname like '${role}%' union all select rolname from pg_roles where rolname = '${role}'`;
  expect(await runSql(adminUrl, `${left} and rolcanlogin`)).toEqual([]);
  await host.client.destroySite(ids.giver, claim(2));
  const again = new SitesCluster(adminUrl, null, 'again');
  await again.open();
  await again.close();
  expect(await runSql(adminUrl, left)).toEqual([]);
});

test('a site that holds the settings of its role and database open in a transaction keeps nobody from changing them', async () => {
  const { adminUrl } = readSharedCluster();
  const id = newSiteId();
  const holding = await host.client.ensureSite(id, { domain: 'holding.org' }, claim(1));
  const { username: role } = new URL(holding.database_url);
  const cluster = new SitesCluster(adminUrl, null, 'overruling');
  await cluster.open();
  const replaced = `${role}_${'a'.repeat(12)}`;
  await cluster.createDatabase(replaced, role);
  const [{ name } = { name: '' }] = await runSql<{ name: string }>(
    holding.database_url,
    'select current_database() as name',
  );
  const hold = async (statement: string): Promise<void> => {
    const client = await openSession(holding.database_url);
    await client.query(`begin; ${statement}`);
  };
  await hold(`alter database ${replaced} connection limit 7`);
  await cluster.dropDatabase(replaced);
  await hold(`alter role ${role} in database ${name} set work_mem = '5MB'`);
  await cluster.keepReadOnly(role, name, true);
  expect(await cluster.readUsage(role, name)).toMatchObject({ isReadOnly: true });
  await cluster.close();
  await host.client.destroySite(id, claim(2));
});

test('a session that would sleep at its start is refused in every spelling, and other settings are taken', async () => {
  const withOptions = (options: string): string =>
    changed(site.database_url, (url) => url.searchParams.set('options', options));
  const delays = ['-c post_auth_delay=9', '-cPOST_AUTH_DELAY=9', '--post-auth-delay=9', '-c post\\_auth_\\delay=9'];
  for (const options of [...delays, '-W 9', '-W9', '-eW9', '-c a.b=1\\ 2 -W9', '-c'])
    expect(await codeOf(withOptions(options))).toBe('0A000');
  const { port, username: user } = new URL(site.database_url);
  const socket = net.connect(Number(port), '127.0.0.1');
  socket.write(writeStartup(196_608, new Map(Object.entries({ user, database: 'site', post_auth_delay: '9' }))));
  expect(String((await once(socket, 'data'))[0])).toContain('0A000');
  const [row] = await runSql(
    withOptions('-c a.b=one\\ two --work-mem=5MB'),
    "select current_setting('a.b') as word, current_setting('work_mem') as memory",
  );
  expect(row).toEqual({ word: 'one two', memory: '5MB' });
});

test('the role of a removed site is dropped at once, even if another site has let it into its database', async () => {
  const { adminUrl } = readSharedCluster();
  const ids = { giver: newSiteId(), guest: newSiteId() };
  const giver = await host.client.ensureSite(ids.giver, { domain: 'giver.org' }, claim(1));
  const guest = await host.client.ensureSite(ids.guest, { domain: 'guest.org' }, claim(1));
  const { username: role } = new URL(guest.database_url);
  await runSql(
    giver.database_url,
    `do $$ begin execute format('grant connect on database %I to ${role}', current_database()); end $$`,
  );
  await host.client.destroySite(ids.guest, claim(2));
  expect(await runSql(adminUrl, `select from pg_roles where rolname = '${role}'`)).toEqual([]);
  await host.client.destroySite(ids.giver, claim(2));
});

const askWhoCame = 'who came before me?';
/** Starts a server that records its clients in `arrived`. It answers by itself only the question `askWhoCame`. */
async function openSlowServer(): Promise<{ file: string; arrived: net.Socket[]; close: () => Promise<void> }> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-slow-server-'));
  const file = path.join(folder, 'socket');
  const arrived: net.Socket[] = [];
  const server = net.createServer((socket) => {
    arrived.push(socket.on('error', () => undefined));
    socket.once('data', (data) => {
      if (data.toString() !== askWhoCame) return;
      arrived.splice(arrived.indexOf(socket), 1);
      socket.end('you');
    });
  });
  await once(server.listen(file), 'listening');
  const close = async (): Promise<void> => {
    for (const socket of arrived) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  };
  return { file, arrived, close };
}

test('a site’s sessions start one at a time: the next one when the server has answered or hung up', async () => {
  const server = await openSlowServer();
  const starts = new SerialQueue();
  const database = { wake: async () => undefined, address: { path: server.file }, endSessions: async () => undefined };
  let begun = 0;
  const door = net.createServer((client) => {
    begun += 1;
    new EndpointSession(client, {
      database: { ...database, takePlace: () => null },
      beginning: new PostgresStart(),
      startup: Buffer.from('a startup packet'),
      newcomers: [new Newcomers(20), new Newcomers(20)],
      siteId,
      starts,
      onAuthenticated: () => undefined,
      inTurn: (go) => go(),
    }).start(() => undefined);
  });
  await once(door.listen(0, '127.0.0.1'), 'listening');
  const address = door.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const clients = [1, 2, 3].map(() => net.connect(port, '127.0.0.1').on('error', () => undefined));
  await until(() => begun === 3);
  /**
   * Counts the clients that have come. Clients arrive in order, so the answer to a new client shows that all earlier
   * clients are counted.
   */
  const count = async (): Promise<number> => {
    const last = net.connect(server.file);
    last.write(askWhoCame);
    await once(last, 'data');
    return server.arrived.length;
  };
  await until(() => server.arrived.length > 0);
  expect(await count()).toBe(1);
  server.arrived[0]?.write(writeFatal('28000', 'no'));
  await until(() => server.arrived.length > 1);
  expect(await count()).toBe(2);
  server.arrived[1]?.destroy();
  await until(() => server.arrived.length > 2);
  for (const client of clients) client.destroy();
  door.close();
  await server.close();
});
