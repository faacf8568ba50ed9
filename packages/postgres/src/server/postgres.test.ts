/**
 * @processes
 * @root
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isSameProcess, proveProcess } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { initCluster } from './native-postgres';
import { type PostgresServer, startPostgres } from './postgres';

let folder: string;
let server: PostgresServer | undefined;

/**
 * Makes the next cluster durable and created by initdb, as for a user. Tests usually copy clusters, which is faster.
 */
const asForUsers = (): void => void delete process.env['DRYDOCK_EPHEMERAL'];
const { DRYDOCK_EPHEMERAL: before } = process.env;

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-embedded-'));
  fs.chmodSync(folder, 0o711); // as root, the server runs as nobody
});

afterEach(async () => {
  process.env['DRYDOCK_EPHEMERAL'] = before;
  await server?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test('asks everybody for a password by scram, which only we can read', async () => {
  asForUsers();
  server = await startPostgres({ folder });
  const [method] = await query(server.adminUrl, 'SELECT DISTINCT auth_method FROM pg_hba_file_rules');
  expect(method).toEqual({ auth_method: 'scram-sha-256' });
  const wrong = new URL(server.adminUrl);
  wrong.password = 'wrong';
  await expect(query(wrong.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
  expect(fs.statSync(path.join(folder, 'password')).mode & 0o777).toBe(0o600);
  expect(await query(server.adminUrl, 'SHOW wal_level')).toEqual([{ wal_level: 'logical' }]);
  expect(await query(server.adminUrl, 'SHOW fsync')).toEqual([{ fsync: 'on' }]);
});

/** If this process is root, a server with an account runs under that account. Otherwise such a server runs in a box. */
test.each([300_904, null])(
  'a session takes no more memory than it may, and its server goes on (account %s)',
  async (account) => {
    server = await startPostgres({ folder, account, sessionBytes: 512 * 2 ** 20 });
    await expect(query(server.adminUrl, `SELECT length(repeat('x', 600000000))`)).rejects.toMatchObject({
      code: '53200',
    });
    expect(await query(server.adminUrl, `SELECT length(repeat('x', 100000000))`)).toEqual([{ length: 100_000_000 }]);
  },
);

const kinds = [
  ['a server of our own', null],
  ['a server that strangers work in', 300_903],
] as const;

test.each(kinds)('keeps its data over a kill -9: %s', async (_whose, account) => {
  asForUsers();
  server = await startPostgres({ folder, account });
  await query(server.adminUrl, 'CREATE TABLE kept AS SELECT 7 AS n');
  process.kill(server.proof.pid, 'SIGKILL');
  await server.exited;
  server = await startPostgres({ folder, account });
  expect(await query(server.adminUrl, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
});

test.each(kinds)('ends the leftover server of an earlier run on the same data: %s', async (_whose, account) => {
  const earlier = await startPostgres({ folder, account });
  server = await startPostgres({ folder, account });
  expect(isSameProcess(earlier.proof)).toBe(false);
  expect(await query(server.adminUrl, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

test('does not end another program that has got the pid of a dead server', async () => {
  server = await startPostgres({ folder });
  const pidFile = path.join(server.dataDir, 'postmaster.pid');
  process.kill(server.proof.pid, 'SIGKILL');
  await server.exited;
  const stranger = proveProcess(process.pid);
  fs.writeFileSync(pidFile, fs.readFileSync(pidFile, 'utf8').replace(/^\d+/, String(process.pid)));
  server = await startPostgres({ folder });
  expect(stranger !== null && isSameProcess(stranger)).toBe(true);
});

test('clears what an interrupted initdb left', async () => {
  asForUsers();
  fs.mkdirSync(path.join(folder, '17.unfinished'));
  fs.writeFileSync(path.join(folder, '17.unfinished/half'), '');
  server = await startPostgres({ folder });
  expect(fs.existsSync(path.join(folder, '17.unfinished'))).toBe(false);
});

const isRoot = process.getuid?.() === 0;

(isRoot ? describe : describe.skip)(
  `as root below a folder that nobody can enter${isRoot ? '' : ' (needs root)'}`,
  () => {
    test('the data goes elsewhere, durably, and is found again', async () => {
      fs.chmodSync(folder, 0o700);
      const first = await startPostgres({ folder });
      expect(first.isElsewhere).toBe(true);
      await query(first.adminUrl, 'CREATE TABLE kept AS SELECT 7 AS n');
      await first.stop();
      server = await startPostgres({ folder });
      expect(server.dataDir).toBe(first.dataDir);
      expect(await query(server.adminUrl, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
      await server.stop();
      fs.rmSync(path.dirname(first.dataDir), { recursive: true, force: true });
    });
  },
);

test('fails with the message on which another port is tried, if another server has its port', async () => {
  server = await startPostgres({ folder });
  const other = path.join(folder, 'other');
  await expect(startPostgres({ folder: other, port: server.port })).rejects.toThrow(/address already in use/i);
});

test('no password of a statement that fails is in the log, and no ordinary role changes that', async () => {
  let log = '';
  server = await startPostgres({
    folder,
    onLog: (text) => {
      log += text;
    },
  });
  await query(server.adminUrl, "CREATE ROLE somebody LOGIN PASSWORD 'as-it-was'");
  const url = new URL(server.adminUrl);
  url.username = 'somebody';
  url.password = 'as-it-was';
  const change = "ALTER ROLE somebody PASSWORD 'in-the-clear' VALID UNTIL 'never ever'";
  const statements = [
    change,
    `DO $$ BEGIN EXECUTE '${change.replaceAll("'", "''")}'; END $$`,
    `DO $$ BEGIN ${change}; END $$`,
    `${change} AND MORE`,
    'SET log_min_error_statement = error',
    'ALTER ROLE somebody SET log_error_verbosity = verbose',
  ];
  for (const statement of statements)
    await expect(query(url.href, statement)).rejects.toMatchObject({ severity: 'ERROR' });
  await until(() => log.match(/ERROR: /g)?.length === statements.length);
  expect(log).not.toContain('in-the-clear');
});

test('says why it does not start', async () => {
  await expect(startPostgres({ folder, settings: { no_such_setting: '1' } })).rejects.toThrow(/no_such_setting/);
});

test('a new cluster that finds the disk full fails with the code of a full disk', async () => {
  asForUsers();
  const program = path.join(folder, 'initdb');
  // A write to /dev/full fails like a write to a full disk.
  fs.writeFileSync(program, '#!/bin/sh\nexec cat /dev/zero >/dev/full\n', { mode: 0o755 });
  await expect(initCluster(program, path.join(folder, 'data'), 'secret')).rejects.toMatchObject({ code: 'ENOSPC' });
});
