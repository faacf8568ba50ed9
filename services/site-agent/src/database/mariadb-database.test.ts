/**
 * @tier long
 * @processes
 * @root long
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Accounts, firstAccounts } from '@drydock/agent/host';
import { listFetched, openAdmin } from '@drydock/mysql';
import { errorCodeOf } from '@drydock/process';
import { createLog } from '@drydock/service/telemetry';
import { skipTests } from '@drydock/testing/skipped';
import { until } from '@drydock/testing/wait';
import { createConnection } from 'mysql2/promise';
import { packSite, stageSite } from '../../test/archives';
import {
  claim,
  clearHost,
  type FilledSite,
  hostConfig,
  newSiteId,
  startHost,
  type TestClient,
  type TestHost,
} from '../../test/host';
import { spawnHost } from '../../test/spawned-host';
import type { SiteRecord } from '../on-disk/site-folder';
import { MariadbDatabases } from './mariadb-databases';
import { idleMs } from './woken-server';

async function run(url: string, ...statements: string[]): Promise<unknown> {
  const connection = await createConnection(url);
  connection.on('error', () => undefined);
  try {
    let rows: unknown = null;
    for (const sql of statements) [rows] = await connection.query({ sql, rowsAsArray: true });
    return rows;
  } finally {
    connection.destroy();
  }
}

async function bytesBelow(folder: string): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['-s', '-B1', folder]);
  return Number(stdout.split('\t')[0]);
}

/** Returns the pids of servers whose data folder is below this folder. */
async function serversBelow(folder: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_pid, at) => found[at]?.includes('--datadir=') === true && found[at].includes(folder));
}

const databasesOf = (sitesDir: string): MariadbDatabases =>
  new MariadbDatabases({
    sitesDir,
    accounts: new Accounts(sitesDir, firstAccounts.sites),
    onStart: () => undefined,
    log: createLog({ service: 'test', level: 'silent' }),
  });

const limitBytes = 400e6;

const suite = (): void => {
  const waits = { timeoutMs: 60_000 };

  describe('on a host of its own', () => {
    let host: TestHost;
    let site: FilledSite;
    const siteId = newSiteId();
    let folder: string;
    beforeAll(async () => {
      host = await startHost({ ...(await hostConfig()), SITE_DISK_GB: limitBytes / 1e9 });
      folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-mariadb-database-'));
      site = await host.client.ensureSite(siteId, { domain: 'a.org', database: 'mysql' }, claim(1));
    });
    afterAll(async () => {
      await clearHost(host, [siteId]);
      await rm(folder, { recursive: true, force: true });
    });

    test('code of a customer runs only as the customer, also during and after a backup and a restore', async () => {
      await run(
        site.database_url,
        'create table seen (who varchar(200), via varchar(40))',
        'create table shop (id int primary key)',
        'create function spy() returns int sql security invoker begin insert into seen values (current_user(), "function"); return 1; end',
        'create trigger watching before insert on shop for each row insert into seen values (current_user(), "trigger")',
        'create view looked as select spy() as n',
        'create event waking on schedule every 1 second do insert into seen values (current_user(), "event")',
        'insert into shop values (1)',
      );
      await until(
        async () =>
          Number(
            ((await run(site.database_url, 'select count(*) from seen where via = "event"')) as number[][])[0]?.[0],
          ) > 0,
        waits,
      );
      const archive = await packSite(host, siteId, {
        releaseId: 'initial',
        folder: path.join(folder, 'spied'),
        fence: 5,
      });
      await stageSite(host, siteId, archive, { releaseId: 'next', fence: 6 });
      await host.client.switchRelease(siteId, { releaseId: 'next', expectedRelease: 'initial' }, claim(6));
      await host.client.thawSite(siteId, claim(6));
      await run(site.database_url, 'insert into shop values (2)', 'drop event waking');
      expect(await run(site.database_url, 'select distinct who from seen')).toEqual([['site@localhost']]);
      expect(await run(site.database_url, 'select count(*) from seen where via = "trigger"')).toEqual([[2]]);
    });

    test('a database that is too large takes no more rows until a table is emptied', async () => {
      const refusalOf = (sql: string): Promise<string> =>
        run(site.database_url, sql).then(
          () => 'none',
          (error: unknown) => errorCodeOf(error),
        );
      const writesAre = (code: string): Promise<unknown> =>
        until(async () => (await refusalOf('insert into heap (text) values (1)')) === code, {
          ...waits,
          what: `writes with ${code}`,
        });
      await run(site.database_url, 'create table heap (id int auto_increment primary key, text longtext)');
      await writesAre('none');
      const { database } = JSON.parse(await readFile(path.join(site.files_dir, '../release.json'), 'utf8')) as {
        database: string;
      };
      const server = path.join(host.config.SITES_DIR, 'mariadb', database);
      const grow = (): Promise<string> => refusalOf("insert into heap (text) values (repeat('x', 5000000))");
      // The database exceeds its limit a little. A database that exceeds it by more than a fifth would get no session.
      while ((await bytesBelow(server)) < limitBytes + 10e6 && (await grow()) === 'none');
      await writesAre('ER_TABLEACCESS_DENIED_ERROR');
      const empty = (): Promise<boolean> =>
        run(site.database_url, 'select count(*) from heap', 'delete from heap where id = 1', 'truncate heap').then(
          () => true,
          () => false,
        );
      // Open sessions are ended once the database is full, so the session of an attempt may be ended too.
      await until(empty, { ...waits, what: 'an empty table' });
      await writesAre('none');
      // The limit's end ends open sessions too.
      const rows = await until(() => run(site.database_url, 'select count(*) > 0 from heap'), waits);
      expect(rows).toEqual([[1]]);
    });

    test('a server that is killed is started again, and has every write that it had acknowledged', async () => {
      await run(site.database_url, 'create table kept (id int primary key)', 'insert into kept values (1)');
      const servers = await serversBelow(host.config.SITES_DIR);
      expect(servers.length).toBeGreaterThan(0);
      for (const pid of servers) process.kill(pid, 'SIGKILL');
      const rows = (): Promise<unknown> => run(site.database_url, 'select * from kept').catch(() => null);
      await until(async () => JSON.stringify(await rows()) === '[[1]]', { ...waits, what: 'the row' });
      expect(await host.client.probeSite(siteId, '/')).toMatchObject({ sql_ok: true });
    });
  });

  test('after a kill -9 of the host during staging, no server and no database of the release is left', async () => {
    const config = await hostConfig();
    const siteId = newSiteId();
    const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-mariadb-killed-'));
    const first = await spawnHost(config, '');
    const site = await first.client.ensureSite(siteId, { domain: 'a.org', database: 'mysql' }, claim(1));
    await run(site.database_url, 'create table kept (id int primary key)', 'insert into kept values (1)');
    const as = (client: TestClient): TestHost => ({ client, config, controlUrl: '', stop: async () => undefined });
    const archive = await packSite(as(first.client), siteId, {
      releaseId: 'initial',
      folder: path.join(folder, 'a'),
      fence: 2,
    });
    const servers = path.join(config.SITES_DIR, 'mariadb');
    const exited = once(first.child, 'exit');
    const staging = stageSite(as(first.client), siteId, archive, { releaseId: 'next', fence: 3 });
    staging.catch(() => undefined);
    await until(async () => (await readdir(servers)).length === 2, {
      ...waits,
      what: 'the database of the new release',
    });
    first.child.kill('SIGKILL');
    await exited;
    await expect(staging).rejects.toThrow(/./);
    await first.client.close();

    const second = await startHost(config);
    expect(await run(site.database_url, 'select * from kept')).toEqual([[1]]);
    expect(await readdir(servers)).toHaveLength(1);
    await stageSite(second, siteId, archive, { releaseId: 'next', fence: 4 });
    await clearHost(second, [siteId]);
    expect(await serversBelow(config.SITES_DIR)).toEqual([]);
    await rm(folder, { recursive: true, force: true });
  });

  test('a server does not stop before a job that reads its database has ended, even if the job has no session yet', async () => {
    const sitesDir = await mkdtemp(path.join(os.tmpdir(), 'drydock-mariadb-read-'));
    await chmod(sitesDir, 0o711);
    const databases = databasesOf(sitesDir);
    const chosen = await databases.choose();
    const record = { site_id: 'one', role: 'site_0', password: 'secret', mariadb: chosen } as SiteRecord;
    const database = await databases.create(record, databases.placeFor(record));
    const reader = await database.openReader();
    await database.stopIfUnused(performance.now() + idleMs);
    if (reader.database.engine !== 'mariadb') throw new Error('another engine');
    const admin = await openAdmin(reader.database.login, 'mariadb');
    expect(await admin.texts('select 1')).toEqual([['1']]);
    await admin.close();
    reader.close();
    let pauses = 2;
    const hasStopped = async (): Promise<boolean> => {
      pauses += 1;
      await database.stopIfUnused(performance.now() + pauses * idleMs);
      return (await serversBelow(sitesDir)).length === 0;
    };
    await until(hasStopped, { ...waits, what: 'the stop' });
    await database.drop();
    await rm(sitesDir, { recursive: true, force: true });
  });

  test('a server that nobody uses stops, and the next use starts it; one that has events and is served does not stop, and starts with its host', async () => {
    const sitesDir = await mkdtemp(path.join(os.tmpdir(), 'drydock-mariadb-idle-'));
    await chmod(sitesDir, 0o711);
    const databases = databasesOf(sitesDir);
    const chosen = await databases.choose();
    const record = { site_id: 'one', role: 'site_0', password: 'secret', mariadb: chosen } as SiteRecord;
    const place = databases.placeFor(record);
    const database = await databases.create(record, place);
    expect(await serversBelow(sitesDir)).not.toEqual([]);
    await database.stopIfUnused(performance.now() + idleMs);
    expect(await serversBelow(sitesDir)).toEqual([]);
    expect(await database.probe(30_000)).toEqual({ isAnswered: true, detail: null });
    await database.stopIfUnused(performance.now() + 2 * idleMs);
    expect(await serversBelow(sitesDir)).toEqual([]);

    // Events run without any session, so a server that has events is not stopped.
    const { database: reader, close } = await database.openReader();
    if (reader.engine !== 'mariadb') throw new Error('another engine');
    close();
    const admin = await openAdmin(reader.login, 'mariadb');
    await admin.run('create event site.waking on schedule every 1 hour do set @a = 1');
    await admin.close();
    await database.serve();
    await database.stopIfUnused(performance.now() + 3 * idleMs);
    expect(await serversBelow(sitesDir)).not.toEqual([]);
    await databases.close();
    const another = databasesOf(sitesDir);
    const again = await another.open(record, place);
    await again.serve();
    expect(await serversBelow(sitesDir)).not.toEqual([]);
    await again.leave();
    await another.close();
    await database.drop();
    expect(existsSync(path.join(sitesDir, 'mariadb', place.database))).toBe(false);
    await rm(sitesDir, { recursive: true, force: true });
  });
};

describe('the MariaDB of a release', () => {
  if (listFetched().some(({ flavour }) => flavour === 'mariadb')) suite();
  else skipTests('all of it', 'npm run engines -- mariadb@10.11');
});
