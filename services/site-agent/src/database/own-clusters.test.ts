/**
 * Two organisations have a cluster each on one machine. The first organisation uses up what all sessions of a server
 * share: locks, transaction ids and the queue of NOTIFY.
 *
 * @tier long
 * @processes
 * @root long
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp, realpath } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Accounts } from '@drydock/agent/host';
import { defaultMajor, findPostmaster } from '@drydock/postgres';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { createLog } from '@drydock/service/telemetry';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { z } from 'zod';
import { packSite, stageSite, type TestArchive } from '../../test/archives';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { fillVersion, readPage } from '../../test/versions';
import { newSiteRole, SiteFolder, type SiteRecord } from '../on-disk/site-folder';
import { PostgresDatabase } from './postgres-databases';
import { OwnCluster } from './sites-clusters';
import { idleMs } from './woken-server';

const ids = { attacker: newSiteId(), sister: newSiteId(), other: newSiteId() };
let host: TestHost;
let sites: Record<keyof typeof ids, FilledSite>;
let folder: string;

beforeAll(async () => {
  host = await startHost({ ...(await hostConfig()), SITES_DATABASE_URL: undefined });
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-own-clusters-'));
  const make = (name: keyof typeof ids, organisation_id: string) =>
    host.client.ensureSite(ids[name], { domain: `${name}.example.org`, organisation_id }, claim(1));
  const [attacker, sister, other] = await Promise.all([
    make('attacker', 'org-1'),
    make('sister', 'org-1'),
    make('other', 'org-2'),
  ]);
  sites = { attacker, sister, other };
  for (const site of Object.values(sites)) await fillVersion(site, 1);
});
afterAll(async () => {
  await clearHost(host, Object.values(ids));
  rmSync(folder, { recursive: true, force: true });
});

const clusterFolder = (name: string): string => path.join(host.config.SITES_DIR, 'clusters', name);

/** Runs `work` with a session of the attacker. */
async function withSession<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: sites.attacker.database_url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const pack = (siteId: string, name: string, organisation: string): Promise<TestArchive> =>
  packSite(host, siteId, { releaseId: 'initial', folder: path.join(folder, name), fence: 10, organisation });

/** Expects that page, login and backup of the other organisation work. */
async function expectOtherServed(name: string): Promise<void> {
  expect(await readPage(sites.other.url)).toBe('file=1 row=1');
  expect(await runSql(sites.other.database_url, 'select v from version')).toEqual([{ v: 1 }]);
  const { packed } = await pack(ids.other, name, 'org-2');
  expect(packed.entries).toBeGreaterThan(0);
}

const numberSchema = z.tuple([z.object({ n: z.coerce.number() })]);
const readNumber = async (site: FilledSite, sql: string): Promise<number> =>
  numberSchema.parse(await runSql(site.database_url, sql))[0].n;

test('sites of one organisation share a cluster, sites of two organisations do not', () => {
  expect(readdirSync(path.join(host.config.SITES_DIR, 'clusters')).sort()).toEqual(['org-1', 'org-2']);
});

test('an organisation that takes every lock of its cluster keeps nobody else from pages, logins and backups', async () => {
  const attackers = Array.from({ length: 6 }, () => new pg.Client({ connectionString: sites.attacker.database_url }));
  await Promise.all(attackers.map((client) => client.on('error', () => undefined).connect()));
  const take = 'select count(pg_advisory_lock(n + 400000 * $1::bigint)) from generate_series(1, 400000) n';
  try {
    // The locks belong to the session, so a failed statement does not release them.
    for (const [at, client] of attackers.entries())
      await expect(client.query(take, [at])).rejects.toMatchObject({ code: '53200' });
    await expect(runSql(sites.sister.database_url, 'select 1')).rejects.toMatchObject({ code: '53200' });
    await expectOtherServed('locks');
  } finally {
    await Promise.all(attackers.map((client) => client.end()));
  }
  await until(async () => (await readPage(sites.sister.url)) === 'file=1 row=1', {
    what: 'the sister, once the locks are given back',
  });
});

test('an organisation that uses up transaction ids behind an open snapshot harms nobody else', async () => {
  const idSql = 'select pg_current_xact_id()::text as n';
  const before = { attacker: await readNumber(sites.attacker, idSql), other: await readNumber(sites.other, idSql) };
  await withSession(async (holder) => {
    await holder.query('begin isolation level repeatable read');
    await holder.query('select from version');
    await runSql(
      sites.attacker.database_url,
      `do $$ begin for i in 1..50000 loop begin insert into version values (1); raise 'again'; exception when others then null; end; end loop; end $$`,
    );
    const taken = { attacker: await readNumber(sites.attacker, idSql), other: await readNumber(sites.other, idSql) };
    expect(taken.attacker - before.attacker).toBeGreaterThan(50_000);
    expect(taken.other - before.other).toBeLessThan(1_000);
    await expectOtherServed('ids');
  });
});

test('an organisation that fills the queue of NOTIFY behind an idle listener harms nobody else', async () => {
  const usage = 'select pg_notification_queue_usage() as n';
  await withSession(async (listener) => {
    await listener.query('listen news');
    await listener.query('begin');
    const fill = `select count(pg_notify('news', n || repeat('x', 7900))) from generate_series(1, 5000) n`;
    await runSql(sites.attacker.database_url, fill);
    expect(await readNumber(sites.attacker, usage)).toBeGreaterThan(0);
    expect(await readNumber(sites.other, usage)).toBe(0);
    await expectOtherServed('queue');
  });
});

test('a server that is killed is started again, and its sites are served', async () => {
  const server = findPostmaster(await dataDirOf(clusterFolder('org-1')));
  if (server === null) throw new Error('no server was found');
  process.kill(server.pid, 'SIGKILL');
  await until(async () => (await readPage(sites.sister.url)) === 'file=1 row=1', { what: 'the page' });
  expect(await runSql(sites.sister.database_url, 'select v from version')).toEqual([{ v: 1 }]);
});

test('the cluster of an organisation is removed with its last site, and the next site gets a new one', async () => {
  const siteId = newSiteId();
  const make = (fence: number) =>
    host.client.ensureSite(siteId, { domain: 'a.org', organisation_id: 'org-3' }, claim(fence));
  await fillVersion(await make(1), 1);
  const dataDir = await dataDirOf(clusterFolder('org-3'));
  expect(findPostmaster(dataDir)).not.toBeNull();
  await host.client.destroySite(siteId, claim(2));
  expect([existsSync(clusterFolder('org-3')), existsSync(dataDir)]).toEqual([false, false]);
  const again = newSiteId();
  const site = await host.client.ensureSite(again, { domain: 'b.org', organisation_id: 'org-3' }, claim(1));
  expect(await runSql(site.database_url, 'select 1 as n')).toEqual([{ n: 1 }]);
  await host.client.destroySite(again, claim(2));
});

/** Makes a cluster with the database `shop`, whose owner is `role` with the password `secret`. */
async function openCluster(name: string): Promise<{ own: OwnCluster; dataDir: string; role: string }> {
  const options = {
    folder: path.join(folder, name),
    name: 'host',
    accounts: new Accounts(folder, 290_910),
    log: createLog({ service: 'test', level: 'error' }),
  };
  const own = await OwnCluster.open(options);
  const role = newSiteRole();
  await own.cluster.ensureRole(role, 'secret');
  await own.cluster.createDatabase('shop', role);
  return { own, dataDir: await dataDirOf(options.folder), role };
}

test('a cluster is not stopped before a job that reads one of its databases has ended, even if the job has no session yet', async () => {
  const { own, dataDir, role } = await openCluster('read');
  const database = new PostgresDatabase(own.cluster, 'shop', {
    site_id: 'one',
    role,
    password: 'secret',
  } as SiteRecord);
  const reader = await database.openReader();
  await own.stopIfUnused(performance.now() + idleMs);
  if (reader.database.engine !== 'postgres') throw new Error('another engine');
  expect(await runSql(reader.database.url, 'select 1 as n')).toEqual([{ n: 1 }]);
  reader.close();
  await until(() => own.cluster.isUnused());
  await own.stopIfUnused(performance.now() + 3 * idleMs);
  expect(findPostmaster(dataDir)).toBeNull();
  await own.remove();
});

test('a cluster that nobody has used for a while is stopped, unless somebody has a session; the next use starts it', async () => {
  const { own, dataDir, role } = await openCluster('idle');
  const session = new pg.Client({ connectionString: own.cluster.directUrl(role, 'secret', 'shop') });
  session.on('error', () => undefined);
  await session.connect();
  await own.stopIfUnused(performance.now() + idleMs);
  expect(findPostmaster(dataDir)).not.toBeNull();
  const sizeOf = async () => (await own.cluster.readUsage(role, 'shop'))?.bytes ?? 0;
  const before = await sizeOf();
  // Comments on databases are in a table that all databases share. They take space on disk that `pg_database_size` does
  // not count.
  const comment =
    "comment on database shop is %L', (select string_agg(md5(random()::text), '') from generate_series(1, 100000) n)";
  await session.query(`do $$ begin execute format('${comment}); end $$`);
  expect((await sizeOf()) - before).toBeGreaterThan(1_500_000);
  // The files of exported snapshots take space until the transaction ends.
  const commented = await sizeOf();
  await session.query('begin');
  await session.query('do $$ begin for i in 1..500 loop perform pg_export_snapshot(); end loop; end $$');
  expect((await sizeOf()) - commented).toBeGreaterThan(1_500_000);
  await session.query('rollback');
  // The files that the processes of a parallel query share take space too.
  const rolledBack = await sizeOf();
  await session.query('set debug_parallel_query = on');
  const sleeping = session.query('select pg_sleep(1000)').catch(() => undefined);
  await until(async () => (await sizeOf()) - rolledBack > 50_000, { what: 'files of two processes' });
  await own.cluster.endAllSessionsOf(role, 'shop');
  await sleeping;
  await until(() => own.cluster.isUnused());
  await own.stopIfUnused(performance.now() + 2 * idleMs);
  expect(findPostmaster(dataDir)).toBeNull();
  // The regular check of the disk must not keep a cluster running.
  expect(await own.cluster.readUsage(role, 'shop')).toBeNull();
  expect(findPostmaster(dataDir)).toBeNull();
  expect(await own.cluster.listDatabases(role)).toEqual(['shop']);
  await own.remove();
  expect(existsSync(dataDir)).toBe(false);
});

describe('an installation with one Postgres for all sites', () => {
  const siteId = newSiteId();
  let old: TestHost;
  let site: FilledSite;
  const clusterOf = async (releaseId: string): Promise<unknown> =>
    (await new SiteFolder(old.config.SITES_DIR, 'live', siteId).readRelease(releaseId))?.cluster;

  it('keeps serving from it, and puts each new release into the cluster of its organisation', async () => {
    const config = await hostConfig();
    const before = await startHost(config);
    site = await before.client.ensureSite(siteId, { domain: 'old.org', organisation_id: 'org-1' }, claim(1));
    await fillVersion(site, 1);
    await before.stop();

    old = await startHost({ ...config, SITES_DATABASE_FOR: 'older_releases' });
    expect(await readPage(site.url)).toBe('file=1 row=1');
    expect(existsSync(path.join(config.SITES_DIR, 'clusters'))).toBe(false);
    const archive = await packSite(old, siteId, {
      releaseId: 'initial',
      folder: path.join(folder, 'old'),
      fence: 10,
      organisation: 'org-1',
    });
    await stageSite(old, siteId, archive, { releaseId: 'restored', fence: 11 });
    await old.client.switchRelease(siteId, { releaseId: 'restored', expectedRelease: 'initial' }, claim(12));
    await old.client.thawSite(siteId, claim(12));
    expect(await readPage(site.url)).toBe('file=1 row=1');
    expect(await runSql(site.database_url, 'select v from version')).toEqual([{ v: 1 }]);
    expect([await clusterOf('initial'), await clusterOf('restored')]).toEqual([undefined, 'org-1']);
  });

  it('switches back to a release in the shared Postgres, which is empty after the last removal', async () => {
    const databases = async (): Promise<number> => {
      const sql = 'select from pg_database where pg_get_userbyid(datdba) = $1';
      return (await runSql(readSharedCluster().adminUrl, sql, [new URL(site.database_url).username])).length;
    };
    await old.client.switchRelease(siteId, { releaseId: 'initial', expectedRelease: 'restored' }, claim(13));
    await old.client.thawSite(siteId, claim(13));
    expect(await readPage(site.url)).toBe('file=1 row=1');
    await old.client.switchRelease(siteId, { releaseId: 'restored', expectedRelease: 'initial' }, claim(14));
    await old.client.thawSite(siteId, claim(14));
    expect(await databases()).toBe(1);
    await old.client.removeRelease(siteId, 'initial', claim(15));
    expect(await databases()).toBe(0);
    expect(await readPage(site.url)).toBe('file=1 row=1');
    await clearHost(old, [siteId]);
  });
});

async function dataDirOf(cluster: string): Promise<string> {
  const where = path.join(cluster, 'where.txt');
  const home = existsSync(where) ? readFileSync(where, 'utf8').trim() : await realpath(cluster);
  return path.join(home, String(defaultMajor));
}
