/**
 * Rows find their partitions again although the partitioning hash differs in every database.
 *
 * @tier long
 * @processes
 */
import {
  type Customer,
  createCustomer,
  cutOver,
  endMove,
  startTwoServers,
  type TwoServers,
} from '../../test/two-servers';
import { runSql } from '../testing/run-sql';
import { catchUp } from './bring-level';
import { checkUpgrade } from './check/prechecks';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';
import { finishTarget } from './finish';
import type { Move } from './session';

const colours = ['red', 'orange', 'yellow', 'green', 'blue', 'indigo', 'violet', 'grey'];

/**
 * The dropped type shifts the oids of the enum's values, so that they differ from those in the new database. A value's
 * hash depends on its oid.
 */
const content = [
  "create type spare as enum ('a', 'b', 'c'); drop type spare",
  `create type colour as enum (${colours.map((colour) => `'${colour}'`).join(', ')}); create domain paint as colour`,
  `create table by_colour (id int, colour colour, words text, search tsvector generated always as (to_tsvector('english', words)) stored,
    primary key (id, colour)) partition by hash (colour)`,
  'create table by_colour_0 partition of by_colour for values with (modulus 4, remainder 0)',
  // The columns of this partition have another order than its parent's, and it is partitioned itself.
  "create table by_colour_1 (colour colour not null, id int not null, words text, search tsvector generated always as (to_tsvector('english', words)) stored) partition by range (id)",
  'create table low partition of by_colour_1 for values from (minvalue) to (50); create table high partition of by_colour_1 default',
  'alter table by_colour attach partition by_colour_1 for values with (modulus 4, remainder 1)',
  'create table by_colour_2 partition of by_colour for values with (modulus 4, remainder 2)',
  'create unlogged table by_colour_3 partition of by_colour for values with (modulus 4, remainder 3)',
  `create index on by_colour using gin (search)`,
  'create table painted (id int, paints colour[]) partition by range (id); create table painted_low partition of painted for values from (0) to (1000) partition by hash (paints)',
  'create table painted_0 partition of painted_low for values with (modulus 2, remainder 0); create table painted_1 partition of painted_low for values with (modulus 2, remainder 1)',
  'create table of_domain (paint paint primary key) partition by hash (paint); create table of_domain_0 partition of of_domain for values with (modulus 2, remainder 0)',
  'create table of_domain_1 partition of of_domain for values with (modulus 2, remainder 1)',
  'create table by_number (id int primary key) partition by hash (id); create table by_number_0 partition of by_number for values with (modulus 1, remainder 0)',
  `insert into by_colour select n, enum.value, 'added ' || n from generate_series(1, 100) n cross join unnest(enum_range(null::colour)) enum (value)`,
  'insert into painted select n, array[enum.value] from generate_series(1, 9) n cross join unnest(enum_range(null::colour)) enum (value)',
  'insert into of_domain select unnest(enum_range(null::colour)); insert into by_number select generate_series(1, 10)',
];

describe.each([
  [16, 17],
  [17, 18],
] as const)('from %i to %i', (oldMajor, targetMajor) => {
  let servers: TwoServers;
  let move: Customer;
  beforeAll(async () => {
    servers = await startTwoServers(undefined, [oldMajor, targetMajor]);
    move = await createCustomer(servers, 'colours', ...content);
  });
  afterAll(() => servers.stop());

  test('the upgrade goes offline and names the tables; each row is found by its key, and nothing differs', async () => {
    const { path, findings } = await checkUpgrade({
      url: move.oldUrl,
      databaseName: move.databaseName,
      toMajor: targetMajor,
      extensionsOfTarget: [],
      freeBytes: 1e12,
    });
    expect(path).toBe('offline');
    expect(findings.filter(({ code }) => code === 'offline_path').map(({ detail }) => detail)).toEqual([
      expect.stringContaining('such as that of an enum: public.by_colour, public.of_domain, public.painted_low. '),
    ]);
    const offline: Move = { ...move, path };
    for (const stage of [copySchema, copyData, catchUp, cutOver]) await stage(offline);
    expect(await compareDatabases(offline, null)).toMatchObject({ outcome: 'equal', names: [] });
    await finishTarget(offline);
    await endMove(move);
    await runSql(move.ownTargetUrl, "insert into by_colour select n, 'red', 'later' from generate_series(101, 110) n");
    for (const colour of colours) {
      // The planner reads only the partition that the hash selects, so it would not find a misplaced row.
      const [found] = await runSql(
        move.ownTargetUrl,
        `select (select count(*)::int from by_colour where colour = '${colour}') as by_colour,
          (select count(*)::int from painted where paints = array['${colour}'::colour]) as painted, (select count(*)::int from of_domain where paint::colour = '${colour}') as of_domain`,
      );
      expect(found).toEqual({ by_colour: colour === 'red' ? 110 : 100, painted: 9, of_domain: 1 });
    }
  });
});

test('a row that is missing from a partition is a difference of the whole partitioned table, and a recomputed column is reported for that table', async () => {
  const servers = await startTwoServers();
  try {
    const move: Customer = { ...(await createCustomer(servers, 'fewer', ...content)), path: 'offline' };
    for (const stage of [copySchema, copyData, catchUp, cutOver]) await stage(move);
    const told = await compareDatabases(move, null);
    expect(told).toMatchObject({ outcome: 'equal', recomputed: [{ object: 'column "public"."by_colour"."search"' }] });
    expect(told.recomputed[0]?.statements).toContain('REINDEX INDEX "public"."low_search_idx";');
    await runSql(move.ownTargetUrl, "delete from by_colour where id = 7 and colour = 'blue'");
    expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'undecided', names: ['"public"."by_colour"'] });
    await endMove(move);
  } finally {
    await servers.stop();
  }
});
