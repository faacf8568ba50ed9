import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { isChaos } from '@drydock/testing/scope';
import { createOwnedDatabase, runAsAdmin } from '../../test/databases';
import { inOwnProcess } from '../../test/own-process';
import { runSql, withClient } from '../testing/run-sql';
import { MessageMeter } from './message-meter';
import { openSession, runStatement, type SessionOptions } from './session';

async function withSession<T>(
  url: string,
  options: SessionOptions,
  work: (client: Awaited<ReturnType<typeof openSession>>['client']) => Promise<T>,
): Promise<T> {
  const { client, close } = await openSession(url, options);
  try {
    return await work(client);
  } finally {
    await close();
  }
}

const raise = (level: string, bytes: number): string =>
  `do $$ begin set local client_min_messages = notice; raise ${level} '%', pg_catalog.repeat('x', ${bytes}); end $$`;

/**
 * A notice of more than 512 MB makes the driver's parser throw within a socket's handler. A smaller notice only fills
 * the memory.
 */
const noticeBytes = isChaos ? 600_000_000 : 100_000_000;

test('a notice of hundreds of megabytes ends the session with an error that names it, and the process goes on', async () => {
  const { url } = await createOwnedDatabase();
  const { returned, grownMb } = await inOwnProcess(
    `const { client } = await load('session/session').openSession(given.url, { purpose: 'load' });
     const told = await client.query(given.sql).then(() => null, ({ code, isPermanent }) => ({ code, isPermanent }));
     await client.end();
     return told;`,
    { url, sql: raise('notice', noticeBytes) },
  );
  expect(returned).toEqual({ code: 'message_too_large', isPermanent: true });
  expect(grownMb).toBeLessThan(50);
});

/**
 * Returns a program that reads one value, with the driver alone or with a session. It uses the build output, because it
 * runs without jest.
 */
const asking = (url: string, way: 'driver' | 'session', bytes: number): string => `
  const { openSession } = require(${JSON.stringify(path.resolve(__dirname, '../../dist/session/session.js'))});
  const pg = require('pg');
  const ask = async () => {
    const url = ${JSON.stringify(url)};
    const client = ${way === 'driver' ? 'new pg.Client(url)' : "(await openSession(url, { purpose: 'load' })).client"};
    if (${way === 'driver'}) await client.connect();
    await client.query("select pg_catalog.repeat('x', ${bytes})").catch((error) => console.log('told:', error.code));
    await client.end();
    console.log('goes on');
  };
  ask().catch((error) => console.log('told:', error.code));`;

// The driver alone takes several times 540 MB of memory, so only the chaos run tests it.
test.each([['session', 'told: message_too_large\ngoes on\n'] as const, ...(isChaos ? [['driver', ''] as const] : [])])(
  'a value of over 512 MB, asked for by the %s, ends the process only if nothing refuses it by its header',
  async (way, printed) => {
    const { url } = await createOwnedDatabase();
    const ended = await promisify(execFile)(process.execPath, ['-e', asking(url, way, 540_000_000)], {
      cwd: __dirname,
    }).then(
      ({ stdout }) => ({ stdout, stderr: '' }),
      ({ stdout, stderr }: { stdout: string; stderr: string }) => ({ stdout, stderr }),
    );
    expect(ended.stdout).toBe(printed);
    expect(ended.stderr.includes('ERR_STRING_TOO_LONG')).toBe(way === 'driver');
  },
);

test.each([
  ['an error', raise('exception', 50_000_000)],
  ['a value', "select pg_catalog.repeat('x', 100000000)"],
  ['many values', "select pg_catalog.repeat('x', 10000000) from pg_catalog.generate_series(1, 50)"],
  [
    'a setting that the server reports',
    "do $$ begin perform pg_catalog.set_config('application_name', pg_catalog.repeat('x', 1000), false); raise notice '%', pg_catalog.repeat('x', 3000000); end $$",
  ],
])('%s beyond the caps is refused before it is in memory', async (_what, sql) => {
  const database = await createOwnedDatabase();
  await withSession(database.url, { purpose: 'load' }, async (client) => {
    await client.query("set client_min_messages = 'notice'");
    await expect(client.query(sql)).rejects.toMatchObject({ code: 'message_too_large' });
  });
});

test('a message below the caps passes, however its bytes are split', async () => {
  const database = await createOwnedDatabase();
  const [row] = await withSession(
    database.url,
    { purpose: 'load' },
    async (client) => (await client.query<{ x: string }>("select pg_catalog.repeat('x', 10000000) as x")).rows,
  );
  expect(row?.x.length).toBe(10_000_000);
  const message = Buffer.concat([Buffer.from('R\0\0\0\x08\0\0\0\0', 'latin1'), Buffer.from('Z\0\0\0\x05I', 'latin1')]);
  const meter = new MessageMeter({ rowBytes: 10, resultBytes: 10, otherBytes: 10 });
  const answers = [...message].map((byte) => meter.push(Buffer.from([byte])));
  expect(answers.indexOf(true)).toBe(message.length - 1);
});

test('the settings of an owner for the database and its roles do not reach our sessions', async () => {
  const database = await createOwnedDatabase();
  const settings = [
    `role = '${database.name}'`,
    'search_path = evil, public',
    "statement_timeout = '1ms'",
    "idle_session_timeout = '1ms'",
    'default_transaction_read_only = on',
    'standard_conforming_strings = off',
    "datestyle = 'German'",
    'row_security = on',
    "restrict_nonsystem_relation_kind = ''",
  ];
  const [major] = await runAsAdmin<{ n: number }>("select current_setting('server_version_num')::int / 10000 as n");
  if (major?.n !== 16) settings.push("transaction_timeout = '1ms'");
  // With this setting, every new session without overrides fails.
  settings.push("local_preload_libraries = 'no such library'");
  await withClient(database.url, async (owner) => {
    for (const setting of settings) await owner.query(`alter database ${database.name} set ${setting}`);
  });
  const names = [
    'search_path',
    'statement_timeout',
    'default_transaction_read_only',
    'standard_conforming_strings',
    'datestyle',
    'row_security',
  ];
  const shown = await withSession(database.adminUrl, { purpose: 'read' }, async (client) => {
    await client.query('select pg_catalog.pg_sleep(0.01)');
    const values = names.map((name) => `pg_catalog.current_setting('${name}') as ${name}`);
    return (await client.query(`select current_user::text as role, ${values.join(', ')}`)).rows[0];
  });
  const login = new URL(database.adminUrl).username;
  const expected = {
    search_path: '',
    statement_timeout: '1d',
    default_transaction_read_only: 'off',
    standard_conforming_strings: 'on',
  };
  expect(shown).toEqual({ role: login, ...expected, datestyle: 'ISO, YMD', row_security: 'off' });
});

test('a session that reads gets an error if a relation has become a view', async () => {
  const database = await createOwnedDatabase();
  await runSql(database.url, 'create view v as select 1 as one');
  await withSession(database.adminUrl, { purpose: 'read' }, async (client) => {
    await expect(client.query('select * from public.v')).rejects.toThrow('access to non-system view');
  });
});

test('two statements in one text are refused by Postgres', async () => {
  const database = await createOwnedDatabase();
  await withSession(database.url, { purpose: 'load' }, async (client) => {
    await expect(runStatement(client, 'select 1; select 2')).rejects.toThrow('cannot insert multiple commands');
  });
});
