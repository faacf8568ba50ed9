import { isChaos } from '@drydock/testing/scope';
import { createOwnedDatabase } from '../../test/databases';
import { dumpDatabase } from '../dump/dump-database';
import { fingerprintDatabase } from '../dump/fingerprint-database';
import { withClient } from '../testing/run-sql';
import { loadDatabase } from './load-database';

/* What is large in one way or another goes through dump and load, in memory that does not grow with it. CI takes the widest table; `npm run chaos` all. */

const mb = 2 ** 20;

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

/** The most memory that the process has taken while the work went on, threads of its own included. */
async function watchingMemory<T>(work: () => Promise<T>): Promise<{ result: T; grownMb: number }> {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 50);
  try {
    const result = await work();
    return { result, grownMb: Math.round((most - before) / mb) };
  } finally {
    clearInterval(timer);
  }
}

test.each(isChaos ? cases : cases.slice(0, 1))(
  '$what: dumped and loaded, in bounded memory',
  async ({ what, statements, rssMaxMb, hasFingerprint }) => {
    const [source, target] = [await createOwnedDatabase(), await createOwnedDatabase()];
    await withClient(source.url, async (client) => {
      for (const statement of statements) await client.query(statement);
    });
    const startedMs = performance.now();
    const { result, grownMb } = await watchingMemory(() =>
      loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }) }),
    );
    process.stderr.write(`${what}: ${Math.round((performance.now() - startedMs) / 1_000)} s, ${grownMb} MB of memory\n`);
    expect(result.findings).toEqual([]);
    expect(grownMb).toBeLessThan(rssMaxMb);
    if (!hasFingerprint) return;
    expect((await fingerprintDatabase({ url: target.readerUrl })).digest).toBe(
      (await fingerprintDatabase({ url: source.readerUrl })).digest,
    );
  },
  540_000,
);
