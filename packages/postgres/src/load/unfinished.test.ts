import { createOwnedDatabase, type OwnedDatabase } from '../../test/databases';
import { dumpDatabase } from '../dump/dump-database';
import { runSql } from '../testing/run-sql';
import { loadDatabase, tryDump } from './load-database';

/** Creates a database with `statements`, and an empty target for its dump. */
const through = async (
  ...statements: string[]
): Promise<{ target: OwnedDatabase; sections: () => ReturnType<typeof dumpDatabase> }> => {
  const source = await createOwnedDatabase();
  for (const statement of statements) await runSql(source.url, statement);
  return { target: await createOwnedDatabase(), sections: () => dumpDatabase({ url: source.readerUrl }) };
};

test('rows of a table that is partitioned by the hash of an enum find their partitions anew, on each level and beside another scheme', async () => {
  const colours = Array.from({ length: 24 }, (_, number) => `c${number}`);
  const enumOf = `create type colour as enum (${colours.map((colour) => `'${colour}'`).join(', ')})`;
  const { target, sections } = await through(
    enumOf,
    'create table cars (id int, paint colour) partition by hash (paint)',
    'create table cars0 partition of cars for values with (modulus 2, remainder 0)',
    'create table cars1 partition of cars for values with (modulus 2, remainder 1) partition by list (id)',
    'create table cars1_rest partition of cars1 default',
    'create table trips (day int, paint colour) partition by range (day)',
    'create table trips_all partition of trips for values from (0) to (100) partition by hash (paint)',
    'create table "trips Odd" (paint colour, day int)',
    'alter table trips_all attach partition "trips Odd" for values with (modulus 2, remainder 0)',
    'create table trips_even partition of trips_all for values with (modulus 2, remainder 1)',
    'insert into cars select n, p from unnest(enum_range(null::colour)) with ordinality as e (p, n)',
    'insert into trips select n, p from unnest(enum_range(null::colour)) with ordinality as e (p, n)',
  );
  const { tables, findings } = await loadDatabase({ ...target.loader, sections: sections() });
  expect(findings).toEqual([]);
  expect(tables.reduce((sum, { rows }) => sum + rows, 0)).toBe(48);
  const counts = `select (select count(*)::int from cars) as cars, (select count(*)::int from trips) as trips,
    (select count(*)::int from cars, trips where cars.paint = trips.paint and cars.id = trips.day) as both`;
  expect(await runSql(target.url, counts)).toEqual([{ cars: 24, trips: 24, both: 24 }]);
  for (const colour of colours) {
    const found = `select count(*)::int as n from cars where paint = '${colour}'`;
    expect(await runSql(target.url, found)).toEqual([{ n: 1 }]);
  }
});

test('a materialized view whose query fails now is there and empty, and the finding names it and the statement that fills it', async () => {
  const { target, sections } = await through(
    'create table shares (part int, whole int)',
    'insert into shares values (1, 2)',
    'create materialized view "Ratios" as select part / whole as ratio from shares',
    'create index on "Ratios" (ratio)',
    'create materialized view ratios_by_ten as select ratio * 10 as ten from "Ratios"',
    'create materialized view fine as select part from shares',
    'insert into shares values (1, 0)',
  );
  const { findings } = await loadDatabase({ ...target.loader, sections: sections() });
  expect(findings).toEqual([
    {
      kind: 'not_populated',
      object: 'materialized view public."Ratios"',
      reason: 'division by zero. Mend what it needs, then run: REFRESH MATERIALIZED VIEW public."Ratios"',
    },
    {
      kind: 'not_populated',
      object: 'materialized view public.ratios_by_ten',
      reason: expect.stringContaining('REFRESH MATERIALIZED VIEW public.ratios_by_ten'),
    },
  ]);
  const populated = "select matviewname as name from pg_matviews where schemaname = 'public' and ispopulated";
  expect(await runSql(target.url, populated)).toEqual([{ name: 'fine' }]);
  await runSql(
    target.url,
    'delete from shares where whole = 0; refresh materialized view "Ratios"; refresh materialized view ratios_by_ten',
  );
  expect(await runSql(target.url, 'select ten from ratios_by_ten')).toEqual([{ ten: 0 }]);
});

test('a trial of a schema whose materialized view cannot be computed refuses nothing, and has a finding', async () => {
  const { target, sections } = await through(
    "create function rate() returns int language plpgsql as 'begin return 1; end'",
    'create materialized view rates as select rate()',
    "create or replace function rate() returns int language plpgsql as 'begin raise $$no rate today$$; end'",
  );
  const { findings } = await tryDump({ ...target.loader, sections: sections() });
  const reason = expect.stringMatching(/^no rate today\. .* REFRESH MATERIALIZED VIEW public\.rates$/);
  expect(findings).toEqual([{ kind: 'not_populated', object: 'materialized view public.rates', reason }]);
});

test('an object that is restored only in part is a finding with the statement that completes it: checks of tables and domains, and columns whose function now computes another value', async () => {
  const { target, sections } = await through(
    `create table known (n int); insert into known values (1);
     create function is_known(int) returns boolean language sql as 'select exists (select from known where n = $1)';
     create domain "Number" as int constraint "is known" check (is_known(value)); create table numbers (n "Number"); insert into numbers values (1);
     create table marks (mark int constraint "in Range" check (is_known(mark))); insert into marks values (1);
     create function twice(int) returns int language plpgsql immutable as 'begin return 2 * $1; end';
     create function other(int) returns int language plpgsql immutable as 'begin return $1; end';
     create table "Sums" (n int, "Twice" int generated always as (twice(n)) stored, same int generated always as (other(n)) stored);
     insert into "Sums" select generate_series(0, 1);
     create type shade as enum ('red', 'green', 'blue'); create table shades (shade shade, n int, flag int generated always as (other(n)) stored)
       partition by hash (shade);
     create table shades0 partition of shades for values with (modulus 2, remainder 0);
     create table shades1 partition of shades for values with (modulus 2, remainder 1);
     insert into shades (shade, n) select unnest(enum_range(null::shade)), 1;
     alter table known rename to known_before; create or replace function twice(int) returns int language plpgsql immutable as 'begin return 2 - 2 * $1; end'`,
  );
  const { findings } = await loadDatabase({ ...target.loader, sections: sections() });
  expect(findings.sort((a, b) => a.object.localeCompare(b.object))).toEqual([
    {
      kind: 'recomputed',
      object: 'column "public"."Sums"."Twice"',
      reason: expect.stringMatching(
        /other values now than the backup had.* run: UPDATE "public"."Sums" SET "n" = "n"$/,
      ),
    },
    {
      kind: 'not_validated',
      object: 'constraint "in Range" of table "public"."marks"',
      reason: expect.stringMatching(
        /"known" does not exist.* run: ALTER TABLE "public"."marks" VALIDATE CONSTRAINT "in Range"$/,
      ),
    },
    {
      kind: 'not_validated',
      object: 'constraint "is known" of domain "public"."Number"',
      reason: expect.stringMatching(
        /"known" does not exist.* run: ALTER DOMAIN "public"."Number" VALIDATE CONSTRAINT "is known"$/,
      ),
    },
  ]);
  await runSql(
    target.url,
    `alter table known_before rename to known; create or replace function twice(int) returns int language plpgsql immutable as 'begin return 2 * $1; end'`,
  );
  for (const { reason } of findings) await runSql(target.url, reason.slice(reason.indexOf('run: ') + 5));
  expect(await runSql(target.url, 'select * from "Sums" order by n')).toEqual([
    { n: 0, Twice: 0, same: 0 },
    { n: 1, Twice: 2, same: 1 },
  ]);
  expect(await runSql(target.url, 'select conname from pg_constraint where not convalidated')).toEqual([]);
});

test('a CHECK that calls a function by an operator alone is put back when all rows are there', async () => {
  const { target, sections } = await through(
    'create table limits (highest int); insert into limits values (1000)',
    "create function is_low(int) returns boolean language sql as 'select exists (select from limits where highest >= $1)'",
    'create operator ?? (rightarg = int, function = is_low)',
    'create table prices (price int constraint is_low check (?? price)); insert into prices select generate_series(1, 1000)',
  );
  expect((await loadDatabase({ ...target.loader, sections: sections() })).findings).toEqual([]);
  await expect(runSql(target.url, 'insert into prices values (1001)')).rejects.toThrow('is_low');
  expect(await runSql(target.url, 'select conname from pg_constraint where not convalidated')).toEqual([]);
});
