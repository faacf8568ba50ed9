/**
 * Tests a MariaDB server with one customer.
 *
 * @tier long
 * @processes
 */
import net from 'node:net';
import type { DatabaseDescription } from '@drydock/agent/database';
import type { Major } from '@drydock/contracts/databases/major';
import { listFetched } from '@drydock/mysql';
import { RawMysql } from '@drydock/testing/raw-mysql';
import { until } from '@drydock/testing/wait';
import type { Connection } from 'mysql2/promise';
import {
  claim,
  clearHost,
  codeOf,
  createDatabase,
  newDatabaseId,
  newHostFolder,
  spawnHost,
  type TestHost,
} from '../../test/host';
import { askCustomer, connectCustomer, killMysql } from '../../test/mysql-customer';

const major: Major = '10.11';
const isThere = listFetched().some(({ flavour, version }) => flavour === 'mariadb' && version === major);
const withPrograms = isThere ? describe : describe.skip;

withPrograms(`a database of MariaDB ${major} (needs npm run engines -- mariadb@${major})`, () => {
  let host: TestHost;
  let database: DatabaseDescription;
  const databaseId = newDatabaseId();
  beforeAll(async () => {
    host = await spawnHost(await newHostFolder());
    database = await createDatabase(host.client, databaseId, major);
  });
  afterAll(() => clearHost(host));

  const connect = (change: object = {}): Promise<Connection> => connectCustomer(database, change);
  const ask = (...statements: string[]): Promise<unknown> => askCustomer(database, ...statements);

  test('the host says that it has the programs', async () => {
    expect(await host.client.listMajors()).toEqual(expect.arrayContaining([16, 17, 18, major]));
  });

  test('its customer comes by TLS that proves the certificate, and makes all that a database holds', async () => {
    expect(database).toMatchObject({ major, is_up: true, upgrade: null });
    await ask(
      'create table notes (id int auto_increment primary key, text text)',
      "insert into notes (text) values ('one'), ('two')",
      'create view texts as select text from notes',
      'create function doubled(n int) returns int return 2 * n',
      'create trigger shout before insert on notes for each row set new.text = upper(new.text)',
      'create event nightly on schedule every 1 day do delete from notes where id < 0',
      "insert into notes (text) values ('three')",
    );
    expect(await ask('select text, doubled(id) as doubled from notes order by id')).toEqual([
      { text: 'one', doubled: 2 },
      { text: 'two', doubled: 4 },
      { text: 'THREE', doubled: 6 },
    ]);
    const [cipher] = (await ask("show session status like 'Ssl_version'")) as Array<{ Value: string }>;
    expect(cipher?.Value).toBe('TLSv1.3');
  });

  test('no TLS, a wrong password, the administrator and another database are refused', async () => {
    expect(await codeOf(connect({ ssl: undefined }))).toMatch(
      /ER_ACCESS_DENIED_ERROR|ER_SECURE_TRANSPORT_REQUIRED|HANDSHAKE/,
    );
    expect(await codeOf(connect({ password: 'not-the-password' }))).toBe('ER_ACCESS_DENIED_ERROR');
    expect(await codeOf(connect({ user: 'root' }))).toBe('ER_ACCESS_DENIED_ERROR');
    expect(await codeOf(connect({ database: 'mysql' }))).toBe('ER_DBACCESS_DENIED_ERROR');
  });

  test.each([
    'create user other',
    'create database other',
    'grant select on shop.* to other',
    'set global read_only = off',
    'set global event_scheduler = off',
    'set session sql_log_bin = 0',
    "select * from mysql.user into outfile '/tmp/stolen'",
    "load data infile '/etc/passwd' into table notes",
    'create definer = root@localhost view stolen as select 1',
    'show master status',
    'change master to master_host = "elsewhere"',
    'install soname "ha_federatedx"',
  ])('its customer may not: %s', async (statement) => {
    expect(await codeOf(ask(statement))).toMatch(/DENIED|SPECIFIC_ACCESS|CANNOT_USER|ER_OPTION_PREVENTS_STATEMENT/);
  });

  test('its customer sees no session but its own, and no file', async () => {
    const users = (await ask('select distinct user from information_schema.processlist')) as Array<{ user: string }>;
    expect(users).toEqual([{ user: 'shop_owner' }]);
    expect(await ask("select load_file('/etc/passwd') as content")).toEqual([{ content: null }]);
  });

  test('a killed server comes back with everything that was committed, and clients that connect meanwhile wait', async () => {
    await ask('create table kept (a int primary key)', 'insert into kept values (1)');
    const [{ pid }] = (await ask('select @@pid_file as pid')) as [{ pid: string }];
    expect(pid).toMatch(/server\.pid$/);
    killMysql(host, databaseId, major);
    expect(await ask('select a from kept')).toEqual([{ a: 1 }]);
    await until(async () => (await host.client.readDatabase(databaseId)).is_up, {
      what: 'the server',
      timeoutMs: 30_000,
    });
  });

  test('sessions that ask for more memory than the size promises lose their statement, and the server serves on', async () => {
    const [{ pid }] = (await ask('select connection_id() as pid')) as [{ pid: number }];
    const fill = Array.from({ length: 200 }, (_, at) => `set @v${at} = repeat('x', 16000000)`);
    await expect(ask(...fill)).rejects.toThrow(/out of memory/i);
    const [{ pid: later }] = (await ask('select connection_id() as pid')) as [{ pid: number }];
    // A restarted server would count its connection ids from the beginning.
    expect(later).toBeGreaterThan(pid);
  });

  test('clients that connect and do not log in do not keep the customer out', async () => {
    const silent = await Promise.all(Array.from({ length: 120 }, () => openSocket()));
    expect(await ask('select 1 as one')).toEqual([{ one: 1 }]);
    for (const socket of silent) socket.destroy();
  });

  test('clients that name a user and never authenticate do not keep the customer out', async () => {
    const begun: RawMysql[] = [];
    const begin = async (): Promise<void> => {
      const client = await RawMysql.connect({ host: database.host, port: database.port }, database.ca_certificate);
      begun.push(client);
      await client.beginLogin('shop_owner', true);
    };
    const all = Array.from({ length: 120 }, () => begin().catch(() => undefined));
    await until(async () => begun.length >= 75, { what: 'all places taken' });
    expect(await ask('select 1 as one')).toEqual([{ one: 1 }]);
    for (const client of begun) client.destroy();
    void all;
  });

  test('it is gone when it is destroyed', async () => {
    await host.client.destroyDatabase(databaseId, claim(2));
    await expect(host.client.readDatabase(databaseId)).rejects.toMatchObject({ code: 'unknown_database' });
    expect(await codeOf(connect({ connectTimeout: 2_000 }))).toBe('ECONNREFUSED');
  });

  const openSocket = (): Promise<net.Socket> =>
    new Promise((resolve, reject) => {
      const socket = net.connect(database.port, database.host, () => resolve(socket));
      socket.on('error', reject);
    });
});
