/**
 * Tests those guarantees of a database provider that depend on the engine. The tests run with every fetched version of
 * MariaDB and MySQL.
 *
 * @tier long
 * @processes
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { folderSink, folderSource } from '@drydock/archive';
import { type DatabaseHostProcess, startDatabaseHost } from '../../test/database-host-process';
import { askMysql, codeOfMysql, fetchedEngines, type MysqlAddress, type SqlRow } from '../../test/mysql-client';
import type {
  ArchiveToVerify,
  DatabaseProvider,
  DatabaseRef,
  FencedCallWithProgress,
  HostedDatabase,
  InstanceSpec,
} from './database-provider';
import { localDatabaseProvider } from './database-provider.local';

const archiveKey = randomBytes(32);
const specOf = (major: string): InstanceSpec => ({
  major,
  databaseName: 'shop',
  username: 'shop_owner',
  password: 'the-owner-s-password',
  size: { vcpu: 1, ramGb: 1, storageGb: 10 },
});
const call = (fence: number): FencedCallWithProgress => ({
  fence: String(fence),
  workflowId: `w-${fence}`,
  signal: new AbortController().signal,
  progress: () => undefined,
});
const newDatabase = (): DatabaseRef => ({ databaseId: randomUUID(), orgId: randomUUID(), mode: 'live' });

const schema = [
  'create table customers (id int auto_increment primary key, name varchar(80) unique, born date, picture blob)',
  `create table orders (id int auto_increment primary key, customer int not null references customers (id), cents bigint unsigned,
    doubled bigint unsigned as (cents * 2) stored, constraint known foreign key (customer) references customers (id))`,
  "insert into customers (name, born, picture) values ('Ada', '1815-12-10', x'00ff27'), ('ünï ☃', null, null)",
  'insert into orders (customer, cents) values (1, 18446744073709551615 div 2), (2, 7)',
  'create view dear as select name, cents from orders join customers on customers.id = orders.customer where cents > 10',
  'create function twice(n int) returns int deterministic return n * 2',
  'create procedure add_customer(in who varchar(80)) insert into customers (name) values (who)',
  'create trigger no_debt before insert on orders for each row set new.cents = greatest(new.cents, 0)',
  'create event tidy on schedule every 1 day do delete from orders where id < 0',
];
const contents =
  'select (select group_concat(hex(name), hex(picture), born) from customers) as c, (select sum(doubled) from orders) as o, twice(4) as f';

const engines = fetchedEngines.map(({ flavour, version }) => [flavour, version] as const);
const withPrograms = engines.length > 0 ? describe.each(engines) : describe.skip.each([['none', '']]);

withPrograms('the database provider, of %s %s (needs npm run engines)', (flavour, version) => {
  const newPassword = 'another-password-of-the-owner';
  const setPassword =
    flavour === 'mysql' ? `set password = '${newPassword}'` : `set password = password('${newPassword}')`;
  const spec = specOf(version);
  let host: DatabaseHostProcess;
  let provider: DatabaseProvider;
  let folder: string;
  beforeAll(async () => {
    host = await startDatabaseHost();
    provider = localDatabaseProvider({ client: host.client, archiveKey });
    folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-database-backups-'));
  });
  afterAll(async () => {
    await host.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const addressOf = ({ host: address, port }: HostedDatabase): MysqlAddress => ({
    host: address,
    port,
    user: spec.username,
    password: spec.password,
    database: spec.databaseName,
  });
  const ask = (database: HostedDatabase, ...statements: string[]): Promise<SqlRow[]> =>
    askMysql(addressOf(database), ...statements);
  const filled = async (ref: DatabaseRef): Promise<HostedDatabase> => {
    const database = await provider.create(ref, spec, call(1));
    await ask(database, ...schema);
    return database;
  };
  const pack = async (ref: DatabaseRef, fence: number): Promise<ArchiveToVerify> => {
    const archiveId = randomUUID();
    const place = path.join(folder, archiveId);
    const packed = await provider.pack(
      ref,
      { sink: folderSink(place), archiveId, sequence: 1, createdAt: new Date() },
      call(fence),
    );
    expect(packed).toMatchObject({ major: version, manifestMac: expect.any(String) });
    return { source: folderSource(place), archiveId, manifestMac: packed.manifestMac };
  };
  const codeOf = (work: Promise<unknown>) => codeOfMysql(work);

  it('makes a database once, says what it is, and forgets it when it is destroyed', async () => {
    const ref = newDatabase();
    expect(await provider.describe(ref)).toBeNull();
    const made = await provider.create(ref, spec, call(1));
    await ask(made, 'create table kept (a int)');
    const again = await provider.create(ref, spec, call(2));
    const { host: address, port } = made;
    expect(again).toMatchObject({
      host: address,
      port,
      major: version,
      isUp: true,
      databaseName: 'shop',
      upgrade: null,
    });
    expect(await ask(again, 'select count(*) as n from kept')).toEqual([{ n: 0 }]);
    await expect(provider.destroy(ref, call(1))).rejects.toMatchObject({ refusal: 'stale_fence' });
    await provider.destroy(ref, call(3));
    await provider.destroy(ref, call(3));
    expect(await provider.describe(ref)).toBeNull();
  });

  it('proves a backup by restoring it and reading a row back as a client, and refuses one that was tampered with', async () => {
    const ref = newDatabase();
    await filled(ref);
    const archive = await pack(ref, 2);
    const verified = await provider.verifyRestore(ref, version, archive, call(3));
    expect(verified).toEqual({ tables: 2, rows: 4, readFrom: expect.stringMatching(/^`shop`\.`\w+`$/), findings: [] });
    expect(await provider.trySchema(ref, version, archive, call(3))).toMatchObject({ tables: 2, refused: [] });
    const wrong = { ...archive, manifestMac: '0'.repeat(archive.manifestMac.length) };
    await expect(provider.verifyRestore(ref, version, wrong, call(4))).rejects.toMatchObject({
      refusal: 'archive_refused',
    });
    await provider.destroy(ref, call(5));
  });

  it('restores a whole backup behind the address, with the login of the serving instance; the replaced instance can be packed and is removed', async () => {
    const ref = newDatabase();
    const database = await filled(ref);
    const before = await ask(database, contents);
    const archive = await pack(ref, 2);
    await ask(database, 'delete from orders', "call add_customer('Grace')", 'drop view dear', setPassword);
    const move = { upgradeId: 'r-1' };
    const restore = { ...move, major: version, sourceId: ref.databaseId, archive };
    // A repetition of a completed stage begins with an empty target again.
    for (let again = 0; again < 2; again++)
      expect(await provider.stageRestore(ref, restore, call(3))).toMatchObject({ tables: 2, rows: 4 });
    expect(await provider.describe(ref)).toMatchObject({ upgrade: { phase: 'prepared' } });
    await provider.cutover(ref, move, call(3));
    await expect(provider.abandon(ref, move, call(3))).rejects.toMatchObject({ refusal: 'switched' });
    expect(await codeOf(ask(database, 'select 1'))).toBe('ER_ACCESS_DENIED_ERROR');
    const login = { ...addressOf(database), password: newPassword };
    expect(await askMysql(login, contents)).toEqual(before);
    expect(await askMysql(login, "call add_customer('Mary')", 'select count(*) as n from customers')).toEqual([
      { n: 3 },
    ]);
    expect(
      await askMysql(
        login,
        'select distinct definer as definer from information_schema.views union select definer from information_schema.events',
      ),
    ).toEqual([{ definer: 'shop_owner@%' }]);
    const archiveId = randomUUID();
    const replaced = { sink: folderSink(path.join(folder, archiveId)), archiveId, sequence: 2, createdAt: new Date() };
    expect((await provider.pack(ref, replaced, call(3), move)).rawBytes).toBeGreaterThan(0);
    for (let again = 0; again < 2; again++) await provider.finish(ref, move, call(3));
    for (let again = 0; again < 2; again++) await provider.retireOld(ref, move, call(3));
    expect(await provider.describe(ref)).toMatchObject({
      major: version,
      isUp: true,
      upgrade: null,
      switched: ['r-1'],
    });
    await provider.destroy(ref, call(4));
  });

  it('undoes a restore before its switch while the customer continues to write; no stage of an upgrade can be begun', async () => {
    const ref = newDatabase();
    const database = await filled(ref);
    const archive = await pack(ref, 2);
    const move = { upgradeId: 'r-2' };
    await provider.stageRestore(ref, { ...move, major: version, sourceId: ref.databaseId, archive }, call(3));
    await ask(database, "call add_customer('Grace')");
    for (let again = 0; again < 2; again++) await provider.abandon(ref, move, call(3));
    expect(await ask(database, 'select count(*) as n from customers')).toEqual([{ n: 3 }]);
    expect((await provider.describe(ref))?.upgrade).toBeNull();
    await expect(provider.cutover(ref, move, call(3))).rejects.toMatchObject({ refusal: 'moved' });
    await provider.destroy(ref, call(4));
  });
});
