/**
 * Fills databases beyond the disk space of their size, 300 MB here. The agent checks the disk of a database only every
 * few seconds, so the tests wait.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import type { DatabaseDescription } from '@drydock/agent/database';
import { countFolder } from '@drydock/agent/host';
import type { Major } from '@drydock/contracts/databases/major';
import { listFetched } from '@drydock/mysql';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { settleHome } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import {
  claim,
  clearHost,
  codeOf,
  createDatabase,
  customer,
  findInstance,
  firstAnswer,
  instanceFolder,
  killHost,
  newDatabaseId,
  newHostFolder,
  spawnHost,
  type TestHost,
} from '../../test/host';
import { askAdmin, askCustomer, connectCustomer, killMysql } from '../../test/mysql-customer';

const limitGb = 0.3;
const chunkBytes = 8_000_000;
/** Options of a session that asks to write although its database is read-only. */
const writable = { options: '-c default_transaction_read_only=off' };
const waits = { timeoutMs: 120_000 };

let host: TestHost;
beforeAll(async () => {
  host = await spawnHost(await newHostFolder());
});
afterAll(() => clearHost(host));

/** The share of its storage that the data of a database takes, without removed files that are still open. */
async function shareOf(databaseId: string, logFiles: string): Promise<number> {
  const bytes = await countFolder(settleHome(instanceFolder(host, databaseId)).home, logFiles);
  return (bytes ?? 0) / (limitGb * 1e9);
}

describe('a database of Postgres', () => {
  const databaseId = newDatabaseId();
  const neighbourId = newDatabaseId();
  let database: DatabaseDescription;
  let neighbour: DatabaseDescription;
  beforeAll(async () => {
    database = await createDatabase(host.client, databaseId, 18, limitGb);
    neighbour = await createDatabase(host.client, neighbourId, 18, limitGb);
    await runSql(
      customer(database),
      'create table filled (content bytea); alter table filled alter content set storage external',
    );
  });

  /** Writes a chunk in a session that asks to write. */
  const insert = (): Promise<unknown> =>
    codeOf(runSql(customer(database, writable), 'insert into filled values ($1)', [randomBytes(chunkBytes)]));
  const write = (target = database): Promise<unknown> =>
    codeOf(runSql(customer(target), "insert into filled values ('\\x00')"));

  test('above its storage, sessions end and new ones are read-only until they ask to write', async () => {
    const open = new pg.Client(customer(database));
    open.on('error', () => undefined);
    await open.connect();
    while ((await shareOf(databaseId, 'pg_wal')) < 1.05) await insert();
    await until(async () => (await write()) === '25006', { ...waits, what: 'the limit' });
    await expect(open.query('select 1')).rejects.toThrow(/terminat|not queryable|ended/i);
    expect(await runSql(customer(database), 'select count(*)::int > 10 as kept from filled')).toEqual([{ kept: true }]);
    const storage = await host.client.readStorage(databaseId);
    expect(storage).toMatchObject({ state: 'full', limit_bytes: limitGb * 1e9, log_bytes: null });
    expect(storage?.data_bytes).toBeGreaterThan(limitGb * 1e9);
    expect(await host.client.listStorage()).toMatchObject({
      [databaseId]: { state: 'full' },
      [neighbourId]: { state: 'within' },
    });
    await runSql(customer(neighbour), "create table filled as select '\\x00'::bytea as content");
    expect(await write(neighbour)).toBe('done');
  });

  test('an abandoned upgrade and a kill of the agent do not end the limit', async () => {
    const move = { upgrade_id: 'u1', to_major: 17 as const, path: 'logical' as const };
    await host.client.prepareTarget(databaseId, move, claim(2));
    await host.client.abandonUpgrade(databaseId, move.upgrade_id, claim(3));
    const { folder } = host;
    await killHost(host);
    host = await spawnHost(folder);
    expect(await write()).toBe('25006');
  });

  test('a session that frees space ends the limit, and the sessions that began with it', async () => {
    const kept = new pg.Client(customer(database));
    kept.on('error', () => undefined);
    await kept.connect();
    const writeKept = (): Promise<unknown> => codeOf(kept.query("insert into filled values ('\\x00')"));
    expect(await writeKept()).toBe('25006');
    await runSql(customer(database, writable), 'truncate filled');
    await until(async () => (await write()) === 'done', { ...waits, what: 'the end of the limit' });
    await until(async () => (await writeKept()) !== '25006', { ...waits, what: 'the end of the kept session' });
    await kept.end();
    expect(await runSql(customer(database), 'show default_transaction_read_only')).toEqual([
      { default_transaction_read_only: 'off' },
    ]);
  });

  test('a fifth above its storage it gets no sessions, until the staff have made room', async () => {
    const isRefused = async (): Promise<boolean> => {
      await insert();
      return (await firstAnswer(database)).includes('53100');
    };
    await until(isRefused, { ...waits, everyMs: 0, what: 'the end of sessions' });
    expect(await shareOf(databaseId, 'pg_wal')).toBeGreaterThan(1.2);
    expect(await host.client.readStorage(databaseId)).toMatchObject({ state: 'far_over' });
    expect(await write(neighbour)).toBe('done');
    const { adminUrl } = findInstance(host, databaseId);
    await runSql({ connectionString: adminUrl.replace(/postgres$/, 'shop'), ...writable }, 'truncate public.filled');
    await until(async () => (await write()) === 'done', { ...waits, what: 'the end of the limit' });
  });
});

/** The files of the binary log, as a pattern of the shell. */
const logFiles = 'binlog.[0-9]*';
const majors: Major[] = ['10.11', '9.7'];
const fetched = majors.filter((major) => listFetched().some(({ version }) => version === major));
const withPrograms = fetched.length > 0 ? describe.each(fetched) : describe.skip.each(majors);

withPrograms('a database of MariaDB or MySQL %s (needs npm run engines)', (major) => {
  const databaseId = newDatabaseId();
  let database: DatabaseDescription;
  beforeAll(async () => {
    database = await createDatabase(host.client, databaseId, major, limitGb);
    await askCustomer(
      database,
      'create table filled (content longblob)',
      'create table told (at int)',
      'create event tells on schedule every 1 second do insert into told values (1)',
    );
  });

  const write = (): Promise<unknown> => codeOf(askCustomer(database, "insert into filled values ('x')"));
  const chunk = `insert into filled values (repeat('x', ${chunkBytes}))`;

  const runsEvents = async (): Promise<boolean> => {
    // When the limit ends, the agent ends all sessions, perhaps that of an attempt too.
    await until(async () => (await codeOf(askCustomer(database, 'truncate told'))) === 'done', waits);
    return until(async () => String(await askCustomer(database, 'select at from told limit 1')) !== '', waits);
  };

  test('a new database runs its events, and keeps its first sessions', async () => {
    const first = await connectCustomer(database);
    expect(await runsEvents()).toBe(true);
    await until(async () => (await host.client.readStorage(databaseId)) !== null, waits);
    expect(await codeOf(first.query('select 1'))).toBe('done');
    first.destroy();
  });

  test('above its storage it takes no rows and runs no events, also after a kill of its server, until rows are gone', async () => {
    while ((await shareOf(databaseId, logFiles)) < 1.02) await codeOf(askCustomer(database, chunk));
    await until(async () => (await write()) === 'ER_TABLEACCESS_DENIED_ERROR', { ...waits, what: 'the limit' });
    killMysql(host, databaseId, major);
    const scheduler = async (): Promise<unknown> => askCustomer(database, 'select @@global.event_scheduler as state');
    await until(async () => JSON.stringify(await scheduler()) === '[{"state":"OFF"}]', { ...waits, what: 'no events' });
    expect(await write()).toBe('ER_TABLEACCESS_DENIED_ERROR');
    await askCustomer(database, 'truncate told');
    expect(await askCustomer(database, 'select count(*) > 10 as kept from filled')).toEqual([{ kept: 1 }]);
    const kept = await connectCustomer(database);
    const writeKept = (): Promise<unknown> => codeOf(kept.query("insert into filled values ('x')"));
    expect(await writeKept()).toBe('ER_TABLEACCESS_DENIED_ERROR');
    await askCustomer(database, 'truncate filled');
    await until(async () => (await write()) === 'done', { ...waits, what: 'the end of the limit' });
    // The agent ends a session that began under the limit, so that it does not stay without its rights.
    await until(async () => (await writeKept()) !== 'ER_TABLEACCESS_DENIED_ERROR', {
      ...waits,
      what: 'the end of the kept session',
    });
    kept.destroy();
    expect(await runsEvents()).toBe(true);
  });

  test.each([
    [
      'without its rights, while its events run',
      ['revoke insert, create on shop.* from shop_owner', 'set global event_scheduler = on'],
    ],
    ['with its rights, while its events do not run', ['set global event_scheduler = off']],
  ])('within its storage, an owner %s gets both again', async (_, statements) => {
    await askAdmin(host, databaseId, undefined, ...statements);
    await until(async () => (await write()) === 'done', { ...waits, what: 'the rights' });
    expect(await runsEvents()).toBe(true);
  });

  test('a table that is named like the files of the binary log counts as data', async () => {
    await askCustomer(database, 'create table `binlog` (content longblob)');
    const fill = `insert into \`binlog\` values (repeat('x', ${chunkBytes}))`;
    while ((await shareOf(databaseId, logFiles)) < 1.02) await codeOf(askCustomer(database, fill));
    await until(async () => (await write()) === 'ER_TABLEACCESS_DENIED_ERROR', { ...waits, what: 'the limit' });
    expect(await host.client.readStorage(databaseId)).toMatchObject({ state: 'full' });
    await askCustomer(database, 'drop table `binlog`');
    await until(async () => (await write()) === 'done', { ...waits, what: 'the end of the limit' });
  });

  test('a single statement that takes all at once ends its sessions', async () => {
    const values = Array.from({ length: 60 }, () => `(repeat('x', ${chunkBytes}))`).join(', ');
    await codeOf(askCustomer(database, `insert into filled values ${values}`));
    await until(async () => (await write()) === 'ER_DISK_FULL', { ...waits, what: 'the end of sessions' });
    expect(await host.client.readDatabase(databaseId)).toMatchObject({ is_up: true });
  });
});
