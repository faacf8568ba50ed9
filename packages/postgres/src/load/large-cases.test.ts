import { isChaos } from '@drydock/testing/scope';
import { createOwnedDatabase, type OwnedDatabase } from '../../test/databases';
import { inOwnProcess } from '../../test/own-process';
import { fingerprintDatabase } from '../dump/fingerprint-database';
import { withClient } from '../testing/run-sql';

/* What is large in one way or another goes through dump and load, in memory that does not grow with it. CI takes the widest table; `npm run chaos` all. */

interface LargeCase {
  what: string;
  statements: string[];
  /** Beyond what the process has before. */
  rssMaxMb: number;
  /** A fingerprint needs each row as one text, which is too long of a value of 1 GB. */
  hasFingerprint: boolean;
}

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

/** What a load finds, and the most memory that its process has taken meanwhile, threads of its own included. */
const loadInOwnProcess = (readerUrl: string, loader: OwnedDatabase['loader']) =>
  inOwnProcess<unknown[]>(
    `const sections = load('dump/dump-database').dumpDatabase({ url: given.readerUrl });
     return (await load('load/load-database').loadDatabase({ ...given.loader, sections })).findings;`,
    { readerUrl, loader },
  );

test.each(isChaos ? cases : cases.slice(0, 1))(
  '$what: dumped and loaded, in bounded memory',
  async ({ what, statements, rssMaxMb, hasFingerprint }) => {
    const [source, target] = [await createOwnedDatabase(), await createOwnedDatabase()];
    await withClient(source.url, async (client) => {
      for (const statement of statements) await client.query(statement);
    });
    const startedMs = performance.now();
    const { returned: findings, grownMb } = await loadInOwnProcess(source.readerUrl, target.loader);
    process.stderr.write(`${what}: ${Math.round((performance.now() - startedMs) / 1_000)} s, ${grownMb} MB of memory\n`);
    expect(findings).toEqual([]);
    expect(grownMb).toBeLessThan(rssMaxMb);
    if (!hasFingerprint) return;
    expect((await fingerprintDatabase({ url: target.readerUrl })).digest).toBe(
      (await fingerprintDatabase({ url: source.readerUrl })).digest,
    );
  },
  540_000,
);
