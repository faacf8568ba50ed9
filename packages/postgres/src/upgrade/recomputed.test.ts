/**
 * Values that the new version computes differently are reported.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import {
  type Customer,
  createCustomer,
  cutOver,
  endMove,
  startTwoServers,
  type TwoServers,
} from '../../test/two-servers';
import { runSql, withClient } from '../testing/run-sql';
import { catchUp } from './bring-level';
import { checkUpgrade } from './check/prechecks';
import { trySchema } from './check/try-schema';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';
import { withDatabase } from './session';

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers();
});
afterAll(() => servers.stop());

/** Runs work while a snapshot of the new database is open. */
const atSnapshot = (move: Customer, work: (id: string) => Promise<void>): Promise<void> =>
  withClient(withDatabase(move.targetUrl, move.databaseName), async (client) => {
    await client.query('begin isolation level repeatable read read only');
    await work((await client.query('select pg_export_snapshot() as id')).rows[0].id);
  });

/** Words that Postgres 16 and 18 stem differently (see `changing`), and words that they stem alike. */
const texts = {
  english: 'added ebbed egging',
  german: 'läuferinnen lehrerinnen system hoerer',
  italian: 'divano',
  romanian: 'aceşti şcoală',
  french: 'heureusement nationalité',
  spanish: 'rápidamente acciones',
  dutch: 'mogelijkheden kinderen',
  swedish: 'möjligheterna flickorna',
  portuguese: 'rapidamente nações',
  russian: 'вагонами важнейших',
  hungarian: 'házakban gyerekeknek',
  turkish: 'kitaplarım evlerimizden',
};
const changing = ['english', 'german', 'italian', 'romanian'];

const tableOf = ([language, text]: [string, string]): string => `
  create table ${language} (id int primary key, body text, search tsvector generated always as (to_tsvector('${language}', body)) stored,
    letters int generated always as (length(body)) stored);
  create index ${language}_search on ${language} using gin (search);
  insert into ${language} (id, body) values (1, '${text}')`;

test('text search columns of twelve languages are computed by the new version: they are reported with the indexes and views that use them, and are no difference', async () => {
  const move = await createCustomer(
    servers,
    'words_shop',
    ...Object.entries(texts).map(tableOf),
    'create materialized view words as select id, search from english',
    "create index by_expression on english using gin (to_tsvector('english', body))",
    'create table filled (id int primary key, body text, search tsvector)',
    "insert into filled values (1, 'added', to_tsvector('english', 'added'))",
  );
  const { findings } = await checkUpgrade({
    url: move.oldUrl,
    databaseName: move.databaseName,
    toMajor: 18,
    extensionsOfTarget: [],
    freeBytes: 1e12,
  });
  const warned = (code: string): string => findings.find((finding) => finding.code === code)?.detail ?? '';
  expect(warned('computed_anew')).toMatch(/column public\.dutch\.search.* and 8 more\.$/);
  expect(warned('text_search_kept')).toContain('public.filled.search');

  await copySchema(move);
  // One row is copied and one is replicated. The target computes both rows' values.
  await copyData(move);
  await withClient(move.ownUrl, (client) => client.query("insert into english (id, body) values (2, 'egging')"));
  await catchUp(move);
  await cutOver(move);
  await atSnapshot(move, async (id) => {
    const { outcome, names, recomputed } = await compareDatabases(move, id);
    expect([outcome, names]).toEqual(['equal', []]);
    expect(recomputed.map(({ object }) => object).sort()).toEqual([
      ...changing.map((language) => `column "public"."${language}"."search"`),
      'materialized view "public"."words"',
    ]);
    expect(recomputed.find(({ object }) => object.includes('"english"'))?.statements).toEqual([
      'REINDEX INDEX "public"."english_search";',
      'REFRESH MATERIALIZED VIEW "public"."words";',
    ]);
    // The owner must be able to run the statements.
    for (const { statements } of recomputed)
      for (const statement of statements) await runSql(move.ownTargetUrl, statement);
  });
  expect(
    await runSql(
      move.ownTargetUrl,
      "select search::text from english where search @@ to_tsquery('english', 'egging') order by id",
    ),
  ).toEqual([{ search: "'add':1 'ebb':2 'egg':3" }, { search: "'egg':1" }]);
  await endMove(move);
});

test('a materialized view that cannot be computed any more is copied without its content, and so are the views that use it: they are reported, and are no difference', async () => {
  const move = await createCustomer(
    servers,
    'views_shop',
    'create table shares (part int, whole int); insert into shares values (1, 2)',
    'create materialized view "Ratios" as select part / whole as ratio from shares; create index on "Ratios" (ratio)',
    'create materialized view tens as select ratio * 10 as ten from "Ratios"; create materialized view fine as select min(part) as part from shares',
    'insert into shares values (1, 0)',
    "create function rate() returns int language plpgsql as 'begin return 1; end'; create materialized view rates as select rate()",
    "create or replace function rate() returns int language plpgsql as 'begin raise $$no rate today$$; end'",
  );
  const trial = await trySchema({ ...move, secret: randomBytes(32).toString('hex'), fence: '0' });
  expect(trial).toMatchObject([
    {
      level: 'WARNING',
      code: 'not_populated',
      detail: expect.stringMatching(
        /public\.rates cannot .* no rate today\. .* run: REFRESH MATERIALIZED VIEW public\.rates;$/,
      ),
    },
  ]);
  for (const stage of [copySchema, copyData, catchUp, cutOver]) await stage(move);
  const empty = ['"public"."Ratios"', '"public"."rates"', '"public"."tens"'].map((view) => ({
    object: `materialized view ${view}`,
    statements: [`REFRESH MATERIALIZED VIEW ${view};`],
    isEmpty: true,
  }));
  await atSnapshot(move, async (id) => {
    expect(await compareDatabases(move, id)).toMatchObject({ outcome: 'equal', names: [], recomputed: empty });
  });
  await runSql(move.ownTargetUrl, 'delete from shares where whole = 0');
  await runSql(
    move.ownTargetUrl,
    "create or replace function public.rate() returns int language plpgsql as 'begin return 2; end'",
  );
  for (const { statements } of empty) for (const statement of statements) await runSql(move.ownTargetUrl, statement);
  expect(await runSql(move.ownTargetUrl, 'select ten from tens')).toEqual([{ ten: 0 }]);
  await endMove(move);
});

test('a written value that differs is a difference, also beside a generated column; without the snapshot the outcome is undecided', async () => {
  const move = await createCustomer(
    servers,
    'written_shop',
    `create table t (id int primary key, "t" text, body text, search tsvector generated always as (to_tsvector('english', body)) stored)`,
    "insert into t values (1, 'a', 'added')",
  );
  for (const stage of [copySchema, copyData, catchUp, cutOver]) await stage(move);
  await withClient(move.ownTargetUrl, (client) => client.query('update t set "t" = \'b\''));
  await atSnapshot(move, async (id) => {
    expect(await compareDatabases(move, id)).toMatchObject({
      outcome: 'different',
      names: ['"public"."t"'],
      recomputed: [],
    });
  });
  expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'undecided', names: ['"public"."t"'] });
  await endMove(move);
});
