/**
 * @processes
 * @root
 */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect as connectSocket, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { createSiteHostReaderClient } from '@drydock/agent/clients';
import { archiveRoots } from '@drydock/agent/site';
import { openEntries } from '@drydock/archive';
import { listFetched, manifestSchema } from '@drydock/mysql';
import { skipTests } from '@drydock/testing/skipped';
import { until } from '@drydock/testing/wait';
import { type Connection, createConnection } from 'mysql2/promise';
import { archiveKey, packSite, stageSite } from '../../test/archives';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';

const siteId = newSiteId();
const neighbourId = newSiteId();
let host: TestHost;
let site: FilledSite;
let folder: string;
let fence = 10;
const nextFence = (): number => {
  fence += 1;
  return fence;
};
const open: Connection[] = [];

async function connect(url = site.database_url): Promise<Connection> {
  const connection = await createConnection(url);
  connection.on('error', () => undefined);
  open.push(connection);
  return connection;
}

async function run(sql: string, url?: string): Promise<unknown[]> {
  const connection = await connect(url);
  try {
    const [rows] = await connection.query({ sql, rowsAsArray: true });
    return Array.isArray(rows) ? rows : [];
  } finally {
    await connection.end();
  }
}

const isAnswered = (): Promise<boolean> =>
  run('select 1').then(
    (rows) => rows.length === 1,
    () => false,
  );

const readPage = async (): Promise<string> => (await fetch(site.url)).text();

/** Returns the number of rows of `ticks` in a new backup of the release. */
async function archivedTicks(releaseId: string): Promise<number> {
  const { link } = await packSite(host, siteId, {
    releaseId,
    folder: await mkdtemp(path.join(folder, 'ticks-')),
    fence: nextFence(),
  });
  for await (const { path: name, content } of openEntries({
    chain: [link],
    key: archiveKey,
    root: archiveRoots.database,
  })) {
    const bytes = await buffer(content());
    if (name === 'manifest.json')
      return manifestSchema.parse(JSON.parse(String(bytes))).tables.find((table) => table.name === 'ticks')?.rows ?? 0;
  }
  throw new Error('an archive without a manifest');
}

async function restore(releaseId: string, archive: Awaited<ReturnType<typeof packSite>>): Promise<void> {
  const { current_release: from } = await host.client.readSite(siteId);
  await stageSite(host, siteId, archive, { releaseId, fence: nextFence() });
  await host.client.switchRelease(siteId, { releaseId, expectedRelease: String(from) }, claim(fence));
  // Probes the frozen site, as a restore does before visitors are let in.
  expect(await host.client.probeSite(siteId, '/')).toMatchObject({ http_status: 200, sql_ok: true });
  await host.client.thawSite(siteId, claim(fence));
}

const suite = (): void => {
  beforeAll(async () => {
    host = await startHost(await hostConfig());
    folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-mariadb-sites-'));
    site = await host.client.ensureSite(siteId, { domain: 'a.org', database: 'mysql' }, claim(1));
  });
  afterAll(async () => {
    for (const connection of open) connection.destroy();
    await clearHost(host, [siteId, neighbourId]);
    await rm(folder, { recursive: true, force: true });
  });

  test('a restore brings a site on MariaDB back: pages, rows, views, routines and the same login', async () => {
    await run('create table posts (id int primary key, title varchar(100), draft bool)');
    await run("insert into posts values (1, 'Grüße & <b>', false), (2, 'second', true)");
    await run('create view site.shown as select id, title from site.posts where not draft');
    await run('create function twice(n int) returns int deterministic return n * 2');
    await run('create trigger posts_cased before insert on posts for each row set new.title = upper(new.title)');
    const page =
      '<h1><?sql select count(*) from posts ?></h1><?each select id, title from shown ?><p>{{title}}</p><?end?>';
    await writeFile(path.join(site.files_dir, 'index.html'), page);
    expect(await readPage()).toBe('<h1>2</h1><p>Grüße &amp; &lt;b&gt;</p>');
    expect(await host.client.probeSite(siteId, '/')).toMatchObject({ http_status: 200, sql_ok: true });
    const archive = await packSite(host, siteId, {
      releaseId: 'initial',
      folder: path.join(folder, 'first'),
      fence: nextFence(),
    });

    const left = await connect();
    await left.query('drop table posts');
    expect(await readPage()).not.toContain('<h1>');
    await restore('restored', archive);
    await expect(left.query('select 1')).rejects.toThrow(/closed|lost/i);
    expect(await readPage()).toBe('<h1>2</h1><p>Grüße &amp; &lt;b&gt;</p>');
    await run("insert into posts values (3, 'loud', false)");
    expect(await run('select title, twice(id) from shown order by id')).toEqual([
      ['Grüße & <b>', 2],
      ['LOUD', 6],
    ]);
    expect(await host.client.probeSite(siteId, '/')).toMatchObject({ http_status: 200, sql_ok: true });
  });

  test('an event runs in the release that visitors get, and in no other', async () => {
    await run('create table ticks (at timestamp default current_timestamp)');
    await run('create event tick on schedule every 1 second do insert into ticks values ()');
    const ticks = async (): Promise<number> =>
      Number(((await run('select count(*) from ticks')) as number[][])[0]?.[0]);
    await until(async () => (await ticks()) > 0, { what: 'the first tick' });
    const archive = await packSite(host, siteId, {
      releaseId: 'restored',
      folder: path.join(folder, 'ticks'),
      fence: nextFence(),
    });
    const before = await ticks();
    await restore('ticking', archive);
    await until(async () => (await ticks()) > before, { what: 'a tick in the restored release' });
    const inOld = await archivedTicks('restored');
    await until(async () => (await ticks()) > inOld + 1, { what: 'ticks in the release that visitors get' });
    expect(await archivedTicks('restored')).toBe(inOld);
    await run('drop event tick');
  });

  test('a customer reaches no other schema, file, setting or account of the server, and no other site', async () => {
    const neighbour = await host.client.ensureSite(neighbourId, { domain: 'b.org', database: 'mysql' }, claim(1));
    expect(await run('show databases')).toEqual([['information_schema'], ['site']]);
    for (const sql of [
      'select * from mysql.global_priv',
      "select load_file('/etc/passwd')",
      "select 1 into outfile '/tmp/drydock'",
      'set global event_scheduler = off',
      'create user other',
      "grant select on site.* to 'other'@'%'",
      'create database other',
      'kill 1',
      'shutdown',
      "install soname 'ha_connect'",
      'set global general_log = on',
    ]) {
      const told = await run(sql).then(
        (rows) => rows,
        (error: unknown) => error,
      );
      expect([sql, told instanceof Error || JSON.stringify(told) === '[[null]]']).toEqual([sql, true]);
    }
    const crossed = new URL(neighbour.database_url);
    crossed.password = new URL(site.database_url).password;
    await expect(connect(crossed.href)).rejects.toMatchObject({ code: 'ER_ACCESS_DENIED_ERROR' });
  });

  test('clients that send nothing keep nobody out and cost no session of the host; a site has twenty', async () => {
    const sessionsSoFar = async (): Promise<number> =>
      Number(((await run("show global status like 'Connections'")) as string[][])[0]?.[1]);
    const before = await sessionsSoFar();
    const silent: Socket[] = [];
    for (let n = 0; n < 300; n += 1) {
      const { hostname, port } = new URL(site.database_url);
      const socket = connectSocket(Number(port), hostname).on('error', () => undefined);
      silent.push(socket);
      // The server's greeting shows that the session exists.
      await once(socket, 'data');
    }
    // A login is repeated, because it may take more than three seconds on a busy machine and is then refused.
    await until(isAnswered, { what: 'an answer beside them' });
    for (const socket of silent) socket.destroy();
    // The 300 clients caused a session each. Ending 280 of them caused no session of the site agent.
    expect((await sessionsSoFar()) - before).toBeLessThan(400);
    const held: Connection[] = [];
    const fill = async (): Promise<unknown> => {
      for (let n = 0; n < 30; n += 1) held.push(await connect());
      return null;
    };
    // A session of the site's pages may be one of the twenty. A session that has just ended keeps its place until the
    // server closes its connection.
    await until(async () => {
      const refused = await fill().catch((error: unknown) => error);
      const count = held.length;
      for (const connection of held.splice(0)) await connection.end();
      expect(refused).toMatchObject({ code: 'ER_CON_COUNT_ERROR' });
      return count === 19 || count === 20;
    });
    await until(isAnswered, { what: 'a place' });
  });

  test('a login without end fills no memory of the server', async () => {
    const bytesSoFar = async (): Promise<number> =>
      Number(((await run("show global status like 'Bytes_received'")) as string[][])[0]?.[1]);
    const before = await bytesSoFar();
    const { hostname, port } = new URL(site.database_url);
    const socket = connectSocket(Number(port), hostname).on('error', () => undefined);
    await once(socket, 'data');
    socket.write(Buffer.from([0xfe, 0xff, 0xff, 1]));
    socket.write(Buffer.alloc(12e6));
    await new Promise((resolve) => socket.once('close', resolve));
    expect((await bytesSoFar()) - before).toBeLessThan(2e6);
  });

  test('after a restart of the host the site is served as before, and a destroyed site leaves nothing', async () => {
    await host.stop();
    host = await startHost(host.config);
    site = await host.client.readSite(siteId);
    expect(await readPage()).toContain('<h1>');
    expect(await run('select count(*) from posts')).toEqual([[3]]);
    const servers = path.join(host.config.SITES_DIR, 'mariadb');
    expect((await readdir(servers)).length).toBeGreaterThan(1);
    await host.client.destroySite(siteId, claim(nextFence()));
    await host.client.destroySite(neighbourId, claim(nextFence()));
    expect(existsSync(servers) ? await readdir(servers) : []).toEqual([]);
  });

  test('a host lists the databases that new sites can have', async () => {
    const reader = createSiteHostReaderClient({
      url: host.controlUrl,
      secret: String(host.config.SITE_HOST_READER_SECRET),
    });
    expect(await reader.readDatabases()).toEqual(['postgres', 'mysql']);
    await reader.close();
  });
};

describe('sites on MariaDB', () => {
  if (listFetched().some(({ flavour }) => flavour === 'mariadb')) suite();
  else skipTests('all of it', 'npm run engines -- mariadb@10.11');
});
