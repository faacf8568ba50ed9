/**
 * These tests wait for checks of the disk, which come at least five seconds apart.
 *
 * @tier long
 * @processes
 * @root long
 */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { listFetched } from '@drydock/mysql';
import { errorCodeOf, readIfThere } from '@drydock/process';
import { RawMysql } from '@drydock/testing/raw-mysql';
import { skipTests } from '@drydock/testing/skipped';
import { until } from '@drydock/testing/wait';
import { type Connection, createConnection } from 'mysql2/promise';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';

const waits = { timeoutMs: 100_000 };
const siteId = newSiteId();
let host: TestHost;
let site: FilledSite;

async function run(sql: string, socketPath?: string): Promise<unknown> {
  const { hostname, port, username: user, password } = new URL(site.database_url);
  const place = socketPath === undefined ? { host: hostname, port: Number(port) } : { socketPath };
  const connection = await createConnection({ ...place, user, password, database: 'site' });
  connection.on('error', () => undefined);
  try {
    return (await connection.query({ sql, rowsAsArray: true }))[0];
  } finally {
    connection.destroy();
  }
}

const refusalOf = (sql: string, socketPath?: string): Promise<string> =>
  run(sql, socketPath).then(
    () => 'none',
    (error: unknown) => errorCodeOf(error),
  );

/** Returns the socket of the server itself. The endpoint does not count sessions through this socket. */
async function socketOfServer(): Promise<string> {
  const servers = path.join(host.config.SITES_DIR, 'mariadb');
  const [server = ''] = await readdir(servers);
  const note = await readIfThere(path.join(servers, server, 'socket.txt'));
  return path.join(note?.trim() ?? path.join(servers, server, 'socket'), 'mysql.sock');
}

/** Waits until a row can be inserted at the site's address again. */
const hasRoom = (): Promise<unknown> =>
  until(async () => (await refusalOf('insert into heap (text) values (1)')) === 'none', {
    ...waits,
    what: 'writes again',
  });

const suite = (): void => {
  beforeAll(async () => {
    host = await startHost({ ...(await hostConfig()), SITE_DISK_GB: 0.4 });
    site = await host.client.ensureSite(siteId, { domain: 'a.org', database: 'mysql' }, claim(1));
    await run('create table heap (id int auto_increment primary key, text longtext)');
  });
  afterAll(() => clearHost(host, [siteId]));

  test('events that fill the disk while nobody has a session are stopped', async () => {
    // An event runs each second, so the data grows after the site's session has ended.
    await run(
      "create event filling on schedule every 1 second do insert into heap (text) select repeat('x', 5000000) from seq_1_to_8",
    );
    const socket = await socketOfServer();
    const writesAre = (code: string): Promise<unknown> =>
      until(async () => (await refusalOf('insert into heap (text) values (1)', socket)) === code, {
        ...waits,
        what: code,
      });
    await writesAre('ER_TABLEACCESS_DENIED_ERROR');
    const { username: user, password } = new URL(site.database_url);
    const kept = await createConnection({ socketPath: socket, user, password, database: 'site' });
    kept.on('error', () => undefined);
    const writeKept = (): Promise<string> =>
      kept.query('insert into heap (text) values (1)').then(
        () => 'none',
        (error: unknown) => errorCodeOf(error),
      );
    // The statements are repeated, because the session of this test may be ended as well.
    for (const sql of ['drop event filling', 'truncate heap'])
      await until(async () => (await refusalOf(sql, socket)) === 'none', { ...waits, what: sql });
    expect(await refusalOf('drop event filling', socket)).not.toBe('none');
    await hasRoom();
    // A session that began with the limit does not stay without its rights.
    await until(async () => (await writeKept()) !== 'ER_TABLEACCESS_DENIED_ERROR', {
      ...waits,
      what: 'the end of the kept session',
    });
    kept.destroy();
  });

  test('a session in the middle of a change of account is ended with the others of a full site', async () => {
    const { hostname, port, password } = new URL(site.database_url);
    const hidden = await RawMysql.connect({ host: hostname, port: Number(port) });
    await hidden.login('site', password);
    for (const sql of ['use site', 'set session net_read_timeout = 600']) await hidden.query(sql);
    await hidden.beginChange('ghost');
    const fill = "insert into heap (text) select repeat('x', 5000000) from seq_1_to_4";
    // The site may have filled so much that it gets no session at all.
    const ends = ['ER_TABLEACCESS_DENIED_ERROR', 'ER_DISK_FULL'];
    await until(async () => ends.includes(await refusalOf(fill)), { ...waits, what: 'the end of writes' });
    const answers = await hidden.failProof().then(
      async () => ((await hidden.query("insert into heap (text) values ('more')"))[0] === 0xff ? 'refused' : 'filled'),
      () => 'ended',
    );
    expect(answers).toBe('ended');
    const socket = await socketOfServer();
    await until(async () => (await refusalOf('truncate heap', socket)) === 'none', {
      ...waits,
      what: 'its rows to go',
    });
    await hasRoom();
  });

  // Each statement has temporary files above the site's limit, for at least a minute.
  test.each([
    [
      'a sort',
      'set statement max_statement_time = 90 for select seq, repeat(seq, 150) t from seq_1_to_20000000 order by t limit 19999999, 1',
    ],
    [
      'a table that a query needs',
      "select sleep(90) from (select repeat('x', 250) t from seq_1_to_3000000 limit 3000000) large limit 1",
    ],
  ])(
    'temporary files of a site are ended when the disk that it may have is full, and it has its database again: %s',
    async (_name, sql) => {
      expect(['ER_CONNECTION_KILLED', 'PROTOCOL_CONNECTION_LOST']).toContain(await refusalOf(sql));
      await hasRoom();
    },
  );

  test('a site whose sessions hold all memory of its server, so that nobody else gets in, has those sessions ended', async () => {
    const held: Connection[] = [];
    const enter = async (): Promise<string> => {
      try {
        const connection = await createConnection(site.database_url);
        held.push(connection.on('error', () => undefined));
        return 'none';
      } catch (error) {
        return errorCodeOf(error);
      }
    };
    while (held.length < 10) await enter();
    const hold = async (connection: Connection, bytes: number): Promise<void> => {
      for (let n = 0; n < 200; n += 1) await connection.query(`set @held_${bytes}_${n} = repeat('x', ${bytes})`);
    };
    // Fills each session's memory until its statements are refused.
    const fill = (): Promise<unknown> =>
      Promise.all(
        [15e6, 1e6, 50e3, 2e3].map((bytes) => Promise.allSettled(held.map((connection) => hold(connection, bytes)))),
      );
    await fill();
    const hasEnded = async (): Promise<boolean> => {
      // The server keeps threads of ended sessions for reuse, and this login takes one. A session of the site agent
      // then needs a new thread, for which there is no memory.
      await enter();
      const answers = await Promise.allSettled(held.slice(0, 1).map((connection) => connection.query('select 1')));
      return answers.some(({ status }) => status === 'rejected');
    };
    await until(hasEnded, { ...waits, what: 'the end of its sessions' });
    for (const connection of held) connection.destroy();
    await until(async () => (await refusalOf('select 1')) === 'none', { ...waits, what: 'a new session' });
    expect(await run('select @held_2000_0')).toEqual([[null]]);
  });
};

describe('what a MariaDB takes of the disk', () => {
  if (listFetched().some(({ flavour }) => flavour === 'mariadb')) suite();
  else skipTests('all of it', 'npm run engines -- mariadb@10.11');
});
