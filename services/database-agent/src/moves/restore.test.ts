/**
 * Kills the database agent at each point of a restore's switch.
 *
 * @tier long
 * @processes
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseDescription } from '@drydock/agent/database';
import { countFolder } from '@drydock/agent/host';
import { deriveKeys, encodeKeys, folderSink, folderSource } from '@drydock/archive';
import type { Major } from '@drydock/contracts/databases/major';
import { listFetched } from '@drydock/mysql';
import { settlePostgresFolder } from '@drydock/postgres';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { settleHome } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import {
  claim,
  clearHost,
  codeOf,
  createDatabase,
  customer,
  findInstance,
  firstAnswer,
  instanceFolder,
  newDatabaseId,
  newHostFolder,
  ownerPassword,
  spawnHost,
  type TestHost,
} from '../../test/host';
import { killInCutover, upgradeId } from '../../test/move';
import { askCustomer } from '../../test/mysql-customer';

let host: TestHost;
beforeEach(async () => {
  host = await spawnHost(await newHostFolder());
});
afterEach(() => clearHost(host));

const archiveKey = randomBytes(32);

/**
 * Dumps the serving instance, or the instance that the restore `replaced_by` has replaced. Resolves with the values
 * that loading the dump needs.
 */
async function dump(databaseId: string, replaced_by?: string) {
  const archiveId = randomUUID();
  const folder = path.join(path.dirname(host.folder.databasesDir), archiveId);
  const keys = encodeKeys(deriveKeys(archiveKey, randomBytes(16), archiveId));
  const common = { org_id: 'org', archive_id: archiveId, keys };
  const spec = { ...common, sequence: 1, created_at: new Date().toISOString(), ...(replaced_by && { replaced_by }) };
  const wanted = { jobId: randomUUID(), spec, served: { sources: [], sink: folderSink(folder) } };
  const { manifest_mac } = await host.client.dump(databaseId, wanted, claim(1));
  return {
    served: { sources: [folderSource(folder)] },
    spec: { ...common, manifest_mac, source_id: databaseId, upgrade_id: upgradeId },
  };
}
type Dumped = Awaited<ReturnType<typeof dump>>;

async function stage(databaseId: string, { served, spec }: Dumped, id = upgradeId, to_major: Major = 16) {
  await host.client.prepareTarget(databaseId, { upgrade_id: id, to_major, path: 'restore' }, claim(1));
  return host.client.loadDump(databaseId, { jobId: randomUUID(), spec: { ...spec, upgrade_id: id }, served }, claim(1));
}

const textAt = async (database: DatabaseDescription): Promise<unknown> =>
  (await runSql(customer(database), 'select text from notes'))[0];

/** Tells whether a customer could connect to an instance directly at its port, over TLS and without the endpoint. */
const enters = async (database: DatabaseDescription, which: 'old' | 'target'): Promise<boolean> =>
  (await codeOf(
    runSql(customer({ ...database, port: findInstance(host, database.database_id, which).port }), 'select 1'),
  )) === 'done';

test('killed with -9 before, at and after the switch of a restore, the host serves the instance that the record names, and nobody enters the replaced one', async () => {
  const databaseId = newDatabaseId();
  const database = await createDatabase(host.client, databaseId, 16);
  await runSql(customer(database), "create table notes as select 'kept' as text");
  const kept = await dump(databaseId);
  await runSql(customer(database), "update notes set text = 'later'");
  await runSql(customer(database), `create role guest login password '${ownerPassword}'`);
  await runSql(customer(database), 'grant connect on database shop to public');
  expect(await stage(databaseId, kept)).toMatchObject({
    tables: 1,
    rows: 1,
    read_from: '"public"."notes"',
    findings: [],
  });

  for (const [point, text] of [
    ['sealed', 'later'],
    ['before_switch', 'later'],
    ['after_switch', 'kept'],
  ] as const) {
    host = await killInCutover(host, databaseId, point);
    expect([point, await textAt(database)]).toEqual([point, { text }]);
  }
  await host.client.cutover(databaseId, upgradeId, claim(1));
  expect([await enters(database, 'old'), await enters(database, 'target')]).toEqual([false, true]);
  await runSql(customer(database), 'create role made_by_the_owner');
  expect(await stage(databaseId, kept)).toBeNull();

  const replaced = await dump(databaseId, upgradeId);
  await host.client.restOld(databaseId, upgradeId, claim(1));
  await stage(databaseId, replaced, 'restore-2');
  await host.client.cutover(databaseId, 'restore-2', claim(1));
  expect(await textAt(database)).toEqual({ text: 'later' });
  expect(await runSql(customer(database, { user: 'guest' }), 'select 1 as n')).toEqual([{ n: 1 }]);
  expect([await enters(database, 'old'), await enters(database, 'target')]).toEqual([false, true]);
});

test('a database that gets no sessions because it takes too much disk can be dumped and restored, and is open again', async () => {
  const databaseId = newDatabaseId();
  const database = await createDatabase(host.client, databaseId, 16, 0.1);
  await runSql(customer(database), "create table notes as select 'kept' as text");
  const kept = await dump(databaseId);
  await runSql(
    customer(database),
    'create table large (content bytea); alter table large alter content set storage external',
  );
  const options = '-c default_transaction_read_only=off';
  const isClosed = async (): Promise<boolean> => {
    await codeOf(runSql(customer(database, { options }), 'insert into large values ($1)', [randomBytes(8e6)]));
    return (await firstAnswer(database)).includes('53100');
  };
  await until(isClosed, { timeoutMs: 120_000, what: 'the end of sessions' });

  await dump(databaseId);
  await stage(databaseId, kept);
  await host.client.cutover(databaseId, upgradeId, claim(1));
  expect(await until(() => textAt(database).catch(() => null), { timeoutMs: 60_000 })).toEqual({ text: 'kept' });
  expect(await codeOf(runSql(customer(database), 'create table more ()'))).toBe('done');
});

const mysqlMajors: Major[] = ['10.11', '9.7'];
const fetched = mysqlMajors.filter((major) => listFetched().some(({ version }) => version === major));
const withPrograms = fetched.length > 0 ? describe.each(fetched) : describe.skip.each(mysqlMajors);

withPrograms('MariaDB or MySQL %s (needs npm run engines)', (major) => {
  test('a database that gets no sessions because it takes too much disk can be dumped and restored, and is open again', async () => {
    const databaseId = newDatabaseId();
    const database = await createDatabase(host.client, databaseId, major, 0.2);
    await askCustomer(database, "create table notes as select 'kept' as text", 'create table large (content longblob)');
    const kept = await dump(databaseId);
    const values = Array.from({ length: 40 }, () => "(repeat('x', 8000000))").join(', ');
    await codeOf(askCustomer(database, `insert into large values ${values}`));
    const read = () => codeOf(askCustomer(database, 'select 1'));
    await until(async () => (await read()) === 'ER_DISK_FULL', { timeoutMs: 120_000, what: 'the end of sessions' });

    await dump(databaseId);
    await stage(databaseId, kept, upgradeId, major);
    await host.client.cutover(databaseId, upgradeId, claim(1));
    await until(async () => (await read()) === 'done', { timeoutMs: 60_000, what: 'sessions again' });
    expect(await askCustomer(database, 'select text from notes')).toEqual([{ text: 'kept' }]);
    expect(await codeOf(askCustomer(database, 'create table more (id int)'))).toBe('done');
  });

  test('a dump that was taken above the limit is restored as a database that its owner can fill again', async () => {
    const limitGb = 0.3;
    const databaseId = newDatabaseId();
    const database = await createDatabase(host.client, databaseId, major, limitGb);
    await askCustomer(database, 'create table filled (id int auto_increment primary key, content longblob)');
    const isOver = async (): Promise<boolean> =>
      ((await countFolder(settleHome(instanceFolder(host, databaseId)).home, 'binlog.*')) ?? 0) > 1.02 * limitGb * 1e9;
    const write = (bytes = 1): Promise<unknown> =>
      codeOf(askCustomer(database, `insert into filled (content) values (repeat('x', ${bytes}))`));
    while (!(await isOver()) && (await write(8_000_000)) === 'done');
    await until(async () => (await write()) === 'ER_TABLEACCESS_DENIED_ERROR', { timeoutMs: 120_000 });
    // InnoDB keeps the space of deleted rows in the table's file, so the limit is still in force during the dump.
    await askCustomer(database, 'delete from filled where id > 1');
    const reduced = await dump(databaseId);
    expect(await write()).toBe('ER_TABLEACCESS_DENIED_ERROR');

    await stage(databaseId, reduced, upgradeId, major);
    await host.client.cutover(databaseId, upgradeId, claim(1));
    // The undo log of the deletion may bring the old instance so far above its limit that sessions are refused. They
    // are accepted again once the new instance has been counted.
    const isOpen = async (): Promise<boolean> => (await codeOf(askCustomer(database, 'select 1'))) === 'done';
    await until(isOpen, { timeoutMs: 60_000, what: 'sessions again' });
    expect(await codeOf(askCustomer(database, 'create table more (id int)'))).toBe('done');
    expect([await write(), await askCustomer(database, 'select count(*) as n from filled')]).toEqual([
      'done',
      [{ n: 2 }],
    ]);
  });
});

test('of a scratch instance that does not start, nothing is left', async () => {
  const databaseId = newDatabaseId();
  await createDatabase(host.client, databaseId, 16);
  const { served, spec } = await dump(databaseId);
  const jobId = randomUUID();
  const root = path.dirname(instanceFolder(host, databaseId));
  const { dataDir } = settlePostgresFolder(path.join(root, `scratch-${jobId}`), 16);
  mkdirSync(dataDir);
  writeFileSync(path.join(dataDir, 'PG_VERSION'), '1');
  const { upgrade_id: _id, source_id: _source, ...archive } = spec;
  const verifying = host.client.verifyDump(databaseId, { jobId, spec: { ...archive, major: 16 }, served }, claim(1));
  await expect(verifying).rejects.toMatchObject({ code: expect.any(String) });
  expect(readdirSync(root).filter((name) => name.startsWith('scratch'))).toEqual([]);
});

test('a restore that is abandoned before its switch leaves no trace; a role that only policies of the backup mention can do nothing', async () => {
  const databaseId = newDatabaseId();
  const database = await createDatabase(host.client, databaseId, 16);
  await runSql(customer(database), "create role gone login password 'the-gone-one-s-password'");
  await runSql(customer(database), "create table notes as select 'kept' as text");
  await runSql(
    customer(database),
    'alter table notes enable row level security; create policy p on notes to gone using (true)',
  );
  const kept = await dump(databaseId);
  await runSql(customer(database), 'drop policy p on notes; drop role gone');

  await stage(databaseId, kept);
  await host.client.abandonUpgrade(databaseId, upgradeId, claim(1));
  expect([(await host.client.readDatabase(databaseId)).upgrade, await textAt(database)]).toEqual([
    null,
    { text: 'kept' },
  ]);
  await runSql(customer(database), 'create table more ()');

  await stage(databaseId, kept);
  await host.client.cutover(databaseId, upgradeId, claim(1));
  const roles =
    "select rolcanlogin, rolsuper, (select count(*)::int from pg_policy where polroles = array[r.oid]) as policies from pg_roles r where rolname = 'gone'";
  expect(await runSql(customer(database), roles)).toEqual([{ rolcanlogin: false, rolsuper: false, policies: 1 }]);
});
