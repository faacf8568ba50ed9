/**
 * @processes
 */
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import type { DatabaseDescription } from '@drydock/agent/database';
import { writeStartup } from '@drydock/agent/host';
import { findPostmaster } from '@drydock/postgres';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import {
  claim,
  clearHost,
  codeOf,
  createDatabase,
  customer,
  findInstance,
  newDatabaseId,
  newHostFolder,
  spawnHost,
  type TestHost,
} from '../../test/host';

let host: TestHost;
let database: DatabaseDescription;
const databaseId = newDatabaseId();
beforeAll(async () => {
  host = await spawnHost(await newHostFolder());
  database = await createDatabase(host.client, databaseId, 18);
});
afterAll(() => clearHost(host));

test('a customer comes by TLS that proves the certificate, and by SCRAM, to the engine itself', async () => {
  const [row] = await runSql(
    customer(database),
    'select version from pg_stat_ssl where pid = pg_backend_pid() and ssl',
  );
  expect(row).toEqual({ version: 'TLSv1.3' });
  const { adminUrl: url } = findInstance(host, databaseId);
  const [verifier] = await runSql<{ kind: string }>(
    { connectionString: url },
    "select left(rolpassword, 13) as kind from pg_authid where rolname = 'shop_owner'",
  );
  expect(verifier).toEqual({ kind: 'SCRAM-SHA-256' });
  await expect(runSql(customer(database, { ssl: true }), 'select 1')).rejects.toThrow(
    /self-signed certificate|unable to/i,
  );
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
  expect(
    await runSql(
      customer(database, { user: 'reader', password: 'a-reader-s-password' }),
      'select current_user::text as me',
    ),
  ).toEqual([{ me: 'reader' }]);
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

const dataOf = (socket: net.Socket): Promise<string> =>
  new Promise((resolve) => {
    socket.once('data', (data) => resolve(data.toString('latin1')));
    socket.once('close', () => resolve(''));
  });

/** Connects from another address than the owner. */
function connectStranger({ port }: DatabaseDescription): net.Socket {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
  return socket.on('error', () => undefined);
}

/** Begins a login over TLS, and stops when the server requests the password. */
async function beginLogin(plain: net.Socket, { ca_certificate: ca }: DatabaseDescription): Promise<boolean> {
  plain.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
  if ((await dataOf(plain)) !== 'S') return false;
  const socket = tls.connect({ socket: plain, ca, checkServerIdentity: () => undefined });
  socket.on('error', () => undefined);
  socket.write(writeStartup(196_608, new Map(Object.entries({ user: 'made_up', database: 'shop' }))));
  return (await dataOf(socket)).startsWith('R');
}

test('120 strangers who begin logins again and again, and complete none, keep out neither the owner nor the platform', async () => {
  const open = new pg.Client(customer(database));
  await open.connect();
  const sockets = new Set<net.Socket>();
  let begun = 0;
  let isOver = false;
  const attack = async (): Promise<void> => {
    while (!isOver) {
      const socket = connectStranger(database);
      sockets.add(socket);
      const closed = once(socket, 'close');
      if (await beginLogin(socket, database)) begun += 1;
      else socket.destroy();
      await closed;
      sockets.delete(socket);
    }
  };
  const attackers = Array.from({ length: 120 }, attack);
  try {
    // An instance of this size has 75 places, and the open session uses one. So 74 unfinished logins fill it.
    for (const taken of [74, 75, 76]) {
      await until(() => begun >= taken, { what: `${taken} logins that were begun` });
      expect(await runSql(customer(database), 'select 1 as n')).toEqual([{ n: 1 }]);
    }
    expect((await open.query('select 2 as n')).rows).toEqual([{ n: 2 }]);
    expect(await host.client.readDatabase(databaseId)).toMatchObject({ is_up: true });
  } finally {
    isOver = true;
    for (const socket of sockets) socket.destroy();
    await Promise.all(attackers);
    await open.end();
  }
});

test('an owner who uses all connections is told so by the server, and strangers beside it do not keep the platform out', async () => {
  const id = newDatabaseId();
  const full = await createDatabase(host.client, id, 17);
  const clients: pg.Client[] = [];
  const strangers: net.Socket[] = [];
  const open = async (): Promise<void> => {
    const client = new pg.Client(customer(full));
    client.on('error', () => undefined);
    await client.connect();
    clients.push(client);
  };
  const look = async (): Promise<void> => {
    for (let at = 0; at < 5; at += 1) await host.client.readDatabase(id);
  };
  try {
    let code: unknown = 'done';
    while (code === 'done') code = await codeOf(open());
    expect(code).toBe('53300');
    expect(clients.length).toBeGreaterThanOrEqual(75);
    for (let at = 0; at < 10; at += 1) {
      const stranger = connectStranger(full);
      strangers.push(stranger);
      // A stranger without a place may wait long, so the loop does not wait for its login.
      await Promise.race([beginLogin(stranger, full), look()]);
    }
    expect(await host.client.readDatabase(id)).toMatchObject({ is_up: true });
    // Strangers cannot take the reserved connections, which the reader of a precheck or a backup uses.
    expect(await host.client.precheck(id, { toMajor: 18, withTrial: false })).toMatchObject({ path: 'logical' });
  } finally {
    for (const stranger of strangers) stranger.destroy();
    await Promise.all(clients.map((client) => client.end()));
  }
});

test('a statement ends soon after its client has gone', async () => {
  const client = new pg.Client(customer(database));
  client.on('error', () => undefined);
  await client.connect();
  const sleeping = codeOf(client.query('select pg_sleep(100000)'));
  const { adminUrl: connectionString } = findInstance(host, databaseId);
  const countSleeping = async (): Promise<number> =>
    (await runSql({ connectionString }, "select 1 from pg_stat_activity where wait_event = 'PgSleep'")).length;
  await until(async () => (await countSleeping()) === 1);
  const stream: unknown = Reflect.get(Reflect.get(client, 'connection'), 'stream');
  if (stream instanceof net.Socket) stream.destroy();
  await until(async () => (await countSleeping()) === 0);
  expect(await sleeping).not.toBe('done');
});

test('a stranger who has begun a login does not keep an upgrade from closing the old instance', async () => {
  const id = newDatabaseId();
  const moved = await createDatabase(host.client, id, 17);
  await host.client.prepareTarget(id, { upgrade_id: 'up', to_major: 18, path: 'offline' }, claim(1));
  const stranger = connectStranger(moved);
  expect(await beginLogin(stranger, moved)).toBe(true);
  const closed = once(stranger, 'close');
  await host.client.blockWrites(id, 'up', claim(1));
  await closed;
});

test('a client that sends rubbish is disconnected, and GSS encryption is declined as the protocol says', async () => {
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

test('an instance that is killed with -9 comes back, and clients that connect meanwhile wait instead of failing', async () => {
  await runSql(customer(database), 'create table kept as select 7 as n');
  const { adminUrl: url, dataDir } = findInstance(host, databaseId);
  process.kill(findPostmaster(dataDir)?.pid ?? 0, 'SIGKILL');
  await until(async () => (await codeOf(runSql({ connectionString: url }, 'select 1'))) !== 'done');
  expect(await runSql(customer(database), 'select n from kept')).toEqual([{ n: 7 }]);
});
