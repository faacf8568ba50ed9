/**
 * @processes
 */
import { once } from 'node:events';
import net from 'node:net';
import type { DatabaseDescription } from '@drydock/agent/database/protocol';
import { findPostmaster } from '@drydock/postgres/server/postgres-leftover';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import {
  clearHost,
  codeOf,
  createDatabase,
  customer,
  findInstance,
  newDatabaseId,
  newHostFolder,
  spawnHost,
  type TestHost,
} from '../test/host';

let host: TestHost;
let database: DatabaseDescription;
const databaseId = newDatabaseId();
beforeAll(async () => {
  host = await spawnHost(await newHostFolder());
  database = await createDatabase(host.client, databaseId, 18);
});
afterAll(() => clearHost(host));

test('a customer comes by TLS that proves the certificate, and by SCRAM, to the engine itself', async () => {
  const [row] = await runSql(customer(database), 'select version from pg_stat_ssl where pid = pg_backend_pid() and ssl');
  expect(row).toEqual({ version: 'TLSv1.3' });
  const { adminUrl: url } = findInstance(host, databaseId);
  const [verifier] = await runSql<{ kind: string }>(
    { connectionString: url },
    "select left(rolpassword, 13) as kind from pg_authid where rolname = 'shop_owner'",
  );
  expect(verifier).toEqual({ kind: 'SCRAM-SHA-256' });
  await expect(runSql(customer(database, { ssl: true }), 'select 1')).rejects.toThrow(/self-signed certificate|unable to/i);
});

test('no TLS, a wrong password, another database and the role of the platform are refused', async () => {
  expect(await codeOf(runSql(customer(database, { ssl: false }), 'select 1'))).toBe('28000');
  expect(await codeOf(runSql(customer(database, { password: 'not-the-password' }), 'select 1'))).toBe('28P01');
  for (const other of ['postgres', 'template1'])
    expect(await codeOf(runSql(customer(database, { database: other }), 'select 1'))).toBe('28000');
  const { adminUrl: url } = findInstance(host, databaseId);
  const { password } = new URL(url);
  expect(await codeOf(runSql(customer(database, { user: 'postgres', password }), 'select 1'))).toBe('28000');
});

test('the role owns its database, may make roles, and can do nothing beyond', async () => {
  await runSql(
    customer(database),
    "create extension pg_trgm; create role reader login password 'a-reader-s-password'; grant connect on database shop to reader",
  );
  expect(await runSql(customer(database, { user: 'reader', password: 'a-reader-s-password' }), 'select current_user::text as me')).toEqual([
    { me: 'reader' },
  ]);
  for (const statement of [
    'create database more',
    "copy (select 1) to program 'true'",
    'create role high superuser',
    "alter system set work_mem = '1GB'",
    'create publication p for all tables',
  ])
    expect(await codeOf(runSql(customer(database), statement))).toBe('42501');
});

test('a running query can be cancelled through the address', async () => {
  const client = new pg.Client(customer(database));
  await client.connect();
  const sleeping = codeOf(client.query('select pg_sleep(30)'));
  const active = "select 1 from pg_stat_activity where wait_event = 'PgSleep'";
  await until(async () => (await runSql(customer(database), active)).length > 0);
  const packet = Buffer.alloc(16);
  packet.writeUInt32BE(16, 0);
  packet.writeUInt32BE(80_877_102, 4);
  packet.writeInt32BE(Number(Reflect.get(client, 'processID')), 8);
  packet.writeInt32BE(Number(Reflect.get(client, 'secretKey')), 12);
  const socket = net.connect(database.port, '127.0.0.1');
  socket.end(packet);
  await once(socket, 'close');
  expect(await sleeping).toBe('57014');
  await client.end();
});

test('rubbish is hung up on, and GSS encryption is declined in the protocol way', async () => {
  for (const rubbish of ['GET / HTTP/1.1\r\n\r\n', '\xff\xff\xff\xff\0\x03\0\0']) {
    const socket = net.connect(database.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(Buffer.from(rubbish, 'latin1'));
    await once(socket, 'close');
  }
  const gss = net.connect(database.port, '127.0.0.1');
  gss.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 48]));
  expect(String((await once(gss, 'data'))[0])).toBe('N');
  gss.destroy();
});

test('an instance that is killed with -9 comes back, and who connects meanwhile waits instead of failing', async () => {
  await runSql(customer(database), 'create table kept as select 7 as n');
  const { adminUrl: url, dataDir } = findInstance(host, databaseId);
  process.kill(findPostmaster(dataDir)?.pid ?? 0, 'SIGKILL');
  await until(async () => (await codeOf(runSql({ connectionString: url }, 'select 1'))) !== 'done');
  expect(await runSql(customer(database), 'select n from kept')).toEqual([{ n: 7 }]);
});
