/** @tier long */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isChaos } from '@drydock/testing/scope';
import { createOwnedDatabase, type OwnedDatabase } from '../../test/databases';
import { inOwnProcess } from '../../test/own-process';
import { dumpDatabase } from '../dump/dump-database';
import { readText, sectionPaths, textBytesMax, textSection } from '../dump/dump-format';
import { fingerprintDatabase } from '../dump/fingerprint-database';
import { type PostgresServer, startPostgres } from '../server/postgres';
import { withClient } from '../testing/run-sql';
import { withDatabase } from '../testing/test-cluster';

/*
 * Large databases are either dumped and loaded in bounded memory, or refused before anything changes. `npm run
 * test:all` runs the widest table and 1,100 tables. `npm run chaos` runs all cases, with 50,000 tables.
 */

const mb = 2 ** 20;

interface LargeCase {
  what: string;
  statements: string[];
  /** The limit for the growth of the process's memory. */
  rssMaxMb: number;
  /** False if a value of 1 GB makes a row's text too long for a fingerprint. */
  hasFingerprint: boolean;
  isInCi?: boolean;
}

/** The DO block commits after 500 tables, because a transaction holds a lock for each table that it creates. */
const makeTables = (count: number): string => `do $$ begin for n in 1..${count} loop
  execute format('create table t%s (id bigint primary key, name text not null, at timestamptz default now())', n);
  execute format('insert into t%s values (%s, %L)', n, n, n);
  if n % 500 = 0 then commit; end if; end loop; end $$`;
const tables = isChaos ? 50_000 : 1_100;

const columns = Array.from({ length: 1_600 }, (_, number) => `c${number} smallint`);
const cases: LargeCase[] = [
  {
    what: '1,600 columns',
    statements: [
      `create table wide (${columns.join(', ')})`,
      `insert into wide select ${columns.map((_, n) => n).join(', ')} from generate_series(1, 200)`,
    ],
    rssMaxMb: 300,
    hasFingerprint: true,
    isInCi: true,
  },
  {
    what: `${tables} tables`,
    statements: [makeTables(tables)],
    // pg_dump alone takes 360 MB for 50,000 tables.
    rssMaxMb: isChaos ? 500 : 300,
    hasFingerprint: true,
    isInCi: true,
  },
  {
    what: '1 GB of rows',
    statements: [
      'create table rows (id bigint, filler text)',
      "insert into rows select n, string_agg(md5(n::text || m), '') from generate_series(1, 262144) n cross join generate_series(1, 128) m group by n",
    ],
    rssMaxMb: 300,
    hasFingerprint: true,
  },
  {
    what: 'a value of 1 GB',
    statements: [
      "create table held (a text); alter table held alter a set storage external; insert into held values (repeat('x', 1000000000))",
    ],
    rssMaxMb: 300,
    hasFingerprint: false,
  },
];

/** Returns the findings of a load, and by how much the memory of its process grew, threads included. */
const loadInOwnProcess = (readerUrl: string, loader: OwnedDatabase['loader']) =>
  inOwnProcess<unknown[]>(
    `const sections = load('dump/dump-database').dumpDatabase({ url: given.readerUrl });
     return (await load('load/load-database').loadDatabase({ ...given.loader, sections, baseMs: 3_600_000 })).findings;`,
    { readerUrl, loader },
  );

test.each(cases.filter(({ isInCi }) => isChaos || isInCi === true))(
  '$what: dumped and loaded, in bounded memory',
  async ({ what, statements, rssMaxMb, hasFingerprint }) => {
    const [source, target] = [await createOwnedDatabase(), await createOwnedDatabase()];
    await withClient(source.url, async (client) => {
      for (const statement of statements) await client.query(statement);
    });
    const startedMs = performance.now();
    const { returned: findings, grownMb } = await loadInOwnProcess(source.readerUrl, target.loader);
    process.stderr.write(
      `${what}: ${Math.round((performance.now() - startedMs) / 1_000)} s, ${grownMb} MB of memory\n`,
    );
    expect(findings).toEqual([]);
    expect(grownMb).toBeLessThan(rssMaxMb);
    if (!hasFingerprint) return;
    expect((await fingerprintDatabase({ url: target.readerUrl })).digest).toBe(
      (await fingerprintDatabase({ url: source.readerUrl })).digest,
    );
  },
  isChaos ? 3_600_000 : 540_000,
);

test('definitions that no load would take are refused by the dump, for good', async () => {
  const section = textSection(sectionPaths.schemaPre, () => Promise.resolve('x'.repeat(textBytesMax + mb)));
  await expect(readText(section, 2 * textBytesMax)).rejects.toMatchObject({
    code: 'dump_failed',
    isPermanent: true,
    reason: "the definitions of the database's objects are 65 MB of text, and 64 MB can be restored",
  });
});

describe('a server with little room', () => {
  let server: PostgresServer;
  let folder: string;
  const as = (database: string): string => withDatabase(server.adminUrl, database);
  /** Returns the error of a dump, or null. */
  async function refusalOf(database: string): Promise<unknown> {
    try {
      for await (const { content } of dumpDatabase({ url: as(database) }))
        for await (const part of content) expect(part).toBeDefined();
      return null;
    } catch (error) {
      return error;
    }
  }
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'drydock-large-'));
    chmodSync(folder, 0o711);
    const settings = { max_connections: '20', max_locks_per_transaction: '10', autovacuum: 'off' };
    server = await startPostgres({ folder, isEphemeral: true, sessionBytes: 256 * mb, settings });
    await withClient(server.adminUrl, async (admin) => {
      for (const database of ['many', 'heavy']) await admin.query(`create database ${database}`);
    });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('refuses more tables than it can lock at once, for good, and says how many they are', async () => {
    await withClient(as('many'), (client) =>
      client.query(`do $$ begin for n in 1..3000 loop
        execute format('create table t%s ()', n); if n % 50 = 0 then commit; end if; end loop; end $$`),
    );
    expect(await refusalOf('many')).toMatchObject({
      code: 'dump_failed',
      isPermanent: true,
      object: '3000 tables',
      reason: expect.stringContaining('can lock 200 at once (max_locks_per_transaction)'),
    });
  });

  it('refuses a row that needs more memory than a session gets, for good, and names the table', async () => {
    await withClient(as('heavy'), async (client) => {
      await client.query('create table held (a text); alter table held alter a set storage external');
      await client.query("insert into held select repeat('x', 120000000 + n) from generate_series(0, 0) n");
    });
    expect(await refusalOf('heavy')).toMatchObject({
      code: 'dump_failed',
      isPermanent: true,
      object: 'table "public"."held"',
      reason: 'it needs more memory than its server gives one session',
    });
  });
});
