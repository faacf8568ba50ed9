/**
 * The preflight finds rows that contradict the customer's present functions.
 *
 * @processes
 */
import pg from 'pg';
import { changedFunctions, define } from '../../../test/changed-functions';
import { type Customer, createCustomer, startTwoServers, type TwoServers } from '../../../test/two-servers';
import { runSql, withClient } from '../../testing/run-sql';
import { withDatabase } from '../session';
import { askRows, type RowLimits } from './ask-rows';
import type { Finding } from './prechecks.rules';

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers();
});
afterAll(() => servers.stop());

/** Limits that are too high to be reached, so that no result depends on time. */
const unhurried: RowLimits = { statementMs: 600_000, totalMs: 3_600_000, tempFileKb: 1_048_576 };
const ask = ({ oldUrl: url, databaseName }: Customer, limits: Partial<RowLimits> = {}): Promise<Finding[]> =>
  askRows({ url, databaseName, toMajor: 18, limits: { ...unhurried, ...limits } });
const oursSql = "select rolname as name from pg_roles where rolname ~ '^(rd|ld)_'";
const detailsOf = (findings: Finding[]): string[] =>
  findings.map(({ level, code, detail }) => `${level} ${code} ${detail}`);

test.each(changedFunctions)(
  '$name: rows that no longer fit a function are a finding, and there is none before the function changes',
  async ({ name, made, later, detail }) => {
    const move = await createCustomer(servers, name, define('$1'), ...made);
    expect(await ask(move)).toEqual([]);
    await runSql(move.ownUrl, define(later));
    expect(await ask(move)).toEqual([{ level: 'ERROR', code: 'rows_refused', detail: expect.stringMatching(detail) }]);
    expect(await runSql(servers.old.adminUrl, oursSql)).toEqual([]);
  },
);

test('the statement of a finding succeeds once the rows are mended, and the statement for a partition key mends them', async () => {
  const move = await createCustomer(
    servers,
    'mended',
    define('$1'),
    'create table t (a int primary key); create unique index by_f on t (f(a)); insert into t values (1), (2), (4)',
    'create table p (a int generated always as identity, b int) partition by list (f(b)); create table one partition of p for values in (1)',
    'create table two partition of p for values in (2); insert into p (b) values (1), (2)',
    define('3 - $1 % 3'),
  );
  const statements = (await ask(move)).map(({ detail }) => /[A-Z]+ [^:]*;$/.exec(detail)?.[0] ?? '').sort();
  expect(statements).toEqual(['REINDEX INDEX public.by_f;', 'UPDATE public.p SET b = b;']);
  const [reindex = '', update = ''] = statements;
  await expect(runSql(move.ownUrl, reindex)).rejects.toThrow('could not create unique index');
  await runSql(move.ownUrl, 'delete from t where a = 4');
  for (const statement of [reindex, update]) await runSql(move.ownUrl, statement);
  expect(await ask(move)).toEqual([]);
});

/**
 * Returns statements for a table with a row and an index that uses a function of the customer. The function gets `body`
 * after the row was inserted.
 */
const byCode = (name: string, body: string, declared = ''): string[] => {
  const code = (text: string): string =>
    `create or replace function public.${name}(int) returns int language plpgsql immutable as $code$ ${text} $code$`;
  return [
    code('begin return $1; end'),
    `create table ${name}_t (a int primary key); create unique index by_${name} on ${name}_t (${name}(a)); insert into ${name}_t values (1)`,
    code(`${declared} begin ${body}; return $1; end`),
  ];
};

test('hostile code gets nothing out of a preflight except a finding', async () => {
  const becomeSuperuser = "begin execute 'alter role hostile_rows superuser'; exception when others then null; end";
  const move = await createCustomer(
    servers,
    'hostile_rows',
    'create role hostile_other; grant hostile_other to hostile_rows with set false, inherit false',
    'create table seen (who text); grant all on seen to public',
    // An immutable function may call a function that is not immutable.
    "create function let_go() returns void language plpgsql as 'begin set role none; end'",
    "create function note() returns void language sql as 'insert into public.seen values (current_user)'",
    ...byCode('raises', "raise exception 'no'"),
    ...byCode('writes', 'perform public.note()'),
    ...byCode('unlocks', "perform set_config('transaction_read_only', 'off', false); perform public.note()"),
    ...byCode(
      'climbs',
      `perform public.let_go(); ${becomeSuperuser}; raise exception 'acting as %, logged in as %', current_user, session_user`,
    ),
    ...byCode('peeks', 'perform public.let_go(); perform rolpassword from pg_catalog.pg_authid'),
    ...byCode('reads', 'perform public.let_go(); perform secret from theirs.secrets'),
    ...byCode('spills', 'perform count(*) from (select distinct n::text from generate_series(1, 200000) n) d'),
    ...byCode('shouts', "raise exception '%', repeat('x', 5000)"),
    ...byCode('leaves', 'perform pg_terminate_backend(pg_backend_pid())'),
  );
  await withClient(withDatabase(servers.old.adminUrl, 'hostile_rows'), async (admin) => {
    await admin.query('create schema theirs authorization hostile_other; grant usage on schema theirs to public');
    await admin.query(
      "create table theirs.secrets (secret text); alter table theirs.secrets owner to hostile_other; insert into theirs.secrets values ('s')",
    );
  });
  const findings = await ask(move, { tempFileKb: 64 });
  const saidOf = (name: string): string =>
    findings.find(({ detail }) => detail.includes(`index public.by_${name}`))?.detail ?? '';
  expect(saidOf('raises')).toContain('cannot go over: its functions as they are now fail for rows that are there: no.');
  expect(saidOf('writes')).toContain('cannot execute INSERT in a read-only transaction');
  expect(saidOf('unlocks')).toContain('transaction read-write mode must be set before any query');
  expect(saidOf('climbs')).toMatch(/fail for rows that are there: acting as (ld_[0-9a-f]{24}), logged in as \1\./);
  expect(saidOf('peeks')).toContain('permission denied for table pg_authid');
  expect(saidOf('reads')).toContain('permission denied for table secrets');
  expect(saidOf('spills')).toContain('temp_file_limit');
  expect(saidOf('shouts')).toMatch(/: x{300}…\./);
  expect(saidOf('leaves')).toContain('not known');
  expect(
    findings.filter(({ level, code }) => !['ERROR rows_refused', 'WARNING not_checked'].includes(`${level} ${code}`)),
  ).toEqual([]);
  expect(await runSql(move.ownUrl, 'select who from seen')).toEqual([]);
  expect(await runSql(servers.old.adminUrl, 'select rolname as name from pg_roles where rolsuper')).toEqual([
    { name: 'postgres' },
  ]);
  expect(await runSql(servers.old.adminUrl, oursSql)).toEqual([]);
});

test('code that exceeds its time limit, or ignores it, is ended, and the questions after it are still asked', async () => {
  const move = await createCustomer(
    servers,
    'slow_rows',
    ...byCode('sleeps', 'perform pg_sleep(86400)'),
    ...byCode(
      'insists',
      "loop begin perform set_config('statement_timeout', '0', false); perform pg_sleep(86400); exception when query_canceled then null; end; end loop",
    ),
    ...byCode('fine', 'null'),
  );
  const findings = await ask(move, { statementMs: 3_000 });
  expect(detailsOf(findings)).toEqual([
    expect.stringMatching(
      /^WARNING not_checked Whether .* is not known of index public\.by_\w+, index public\.by_\w+: it took longer than 3 s\. /,
    ),
  ]);
  for (const name of ['sleeps', 'insists']) expect(findings[0]?.detail).toContain(`index public.by_${name}`);
  expect(
    await runSql(
      servers.old.adminUrl,
      "select from pg_stat_activity where usename ~ '^ld_' or query ~ 'pg_sleep\\(86'",
    ),
  ).toEqual([]);
  expect(await runSql(servers.old.adminUrl, oursSql)).toEqual([]);
});

test('an object that could not be checked is named: it is locked, has a policy, its owner lost a right, or no time was left', async () => {
  const collides = (name: string): string =>
    `create table ${name} (a int); create unique index by_${name} on ${name} (f(a)); insert into ${name} values (1), (2)`;
  const move = await createCustomer(
    servers,
    'closed_rows',
    define('$1'),
    ...['locked', 'policed', 'taken'].map(collides),
    'alter table policed enable row level security; alter table policed force row level security; create policy none on policed using (false)',
    'revoke all on taken from closed_rows',
    define('0'),
  );
  expect(detailsOf(await ask(move)).sort()).toEqual([
    expect.stringMatching(/^ERROR rows_refused index public\.by_locked cannot go over: /),
    expect.stringMatching(
      /^WARNING not_checked .* known of index public\.by_policed: query would be affected by row-level security policy/,
    ),
    expect.stringMatching(
      /^WARNING not_checked .* known of index public\.by_taken: permission denied for table taken\. /,
    ),
  ]);
  await withClient(move.ownUrl, async (client) => {
    await client.query('begin; lock table locked');
    const locked = /^WARNING not_checked .* known of the whole database: a table is locked\. /;
    expect(detailsOf(await ask(move))).toEqual([expect.stringMatching(locked)]);
    await client.query('rollback');
  });
  const details = detailsOf(await ask(move, { totalMs: 0 }));
  expect(details).toEqual([expect.stringMatching(/: there was no time left\. /)]);
  for (const name of ['locked', 'policed', 'taken']) expect(details[0]).toContain(`index public.by_${name}`);
});

test('a question has the memory of one process, whatever is set for the database', async () => {
  const move = await createCustomer(
    servers,
    'wide_rows',
    'alter database wide_rows set parallel_setup_cost = 0; alter database wide_rows set parallel_tuple_cost = 0; alter database wide_rows set min_parallel_table_scan_size = 0',
    "alter database wide_rows set max_parallel_workers_per_gather = 4; alter database wide_rows set debug_parallel_query = on; alter database wide_rows set work_mem = '1GB'",
    define('$1'),
    'create table t (a int primary key); create unique index by_f on t (f(a)); insert into t select generate_series(1, 20000); analyze t',
    `create function leader() returns int language sql stable parallel safe as 'select leader_pid from pg_catalog.pg_stat_activity where pid = pg_catalog.pg_backend_pid()'`,
    `create or replace function f(int) returns int language plpgsql immutable parallel safe as
      $code$ begin if public.leader() is not null or current_setting('work_mem') <> '16MB' then raise exception 'with more'; end if; return $1; end $code$`,
  );
  expect(await ask(move)).toEqual([]);
});

test('an exclusion that is compared pair by pair is checked for few rows, and not for many', async () => {
  const move = await createCustomer(
    servers,
    'pairs',
    define('$1'),
    'create table few (a int, constraint few_apart exclude using gist (box(point(f(a), 0), point(f(a), 1)) with &&)); insert into few select generate_series(1, 100)',
    'create table many (a int, constraint many_apart exclude using gist (box(point(f(a), 0), point(f(a), 1)) with &&))',
    'insert into many select generate_series(1, 40000)',
    define('case $1 when 100 then 99 else $1 end'),
    'update many set a = 50000 where a = 100',
  );
  expect(detailsOf(await ask(move, { statementMs: 2_000 }))).toEqual([
    expect.stringMatching(
      /^ERROR rows_refused constraint few_apart of table public\.few cannot go over: .* REINDEX INDEX public\.few_apart;$/,
    ),
    expect.stringMatching(
      /^WARNING not_checked .* known of constraint many_apart of table public\.many: it took longer than 2 s\. /,
    ),
  ]);
});

test('each object is checked as its owner: a table of pg_database_owner as the database’s owner, a table of the superuser not at all', async () => {
  const whoSql = "raise exception 'as %', current_user";
  const move = await createCustomer(
    servers,
    'owned_rows',
    ...byCode('app', whoSql),
    ...byCode('everybody', whoSql),
    ...byCode('platform', whoSql),
  );
  await withClient(withDatabase(servers.old.adminUrl, 'owned_rows'), async (admin) => {
    await admin.query(
      'create role owned_app; alter table app_t owner to owned_app; grant usage on schema public to owned_app',
    );
    await admin.query('alter table everybody_t owner to pg_database_owner; alter table platform_t owner to postgres');
  });
  expect(detailsOf(await ask(move)).sort()).toEqual([
    expect.stringMatching(/^ERROR rows_refused index public\.by_app .*: as owned_app\./),
    expect.stringMatching(/^ERROR rows_refused index public\.by_everybody .*: as owned_rows\./),
    expect.stringMatching(
      /^WARNING not_checked .* known of index public\.by_platform: its owner is no role of the database\. /,
    ),
  ]);
});

test('a large schema without such code takes one query of the catalogue, like an empty schema, and no further login', async () => {
  const table = (
    number: number,
  ): string => `create table t${number} (a int primary key, b text, c int generated always as (a + 1) stored);
    create unique index on t${number} (lower(b)) where a > 0`;
  const tables = Array.from({ length: 300 }, (_, number) => table(number));
  const empty = await createCustomer(servers, 'empty_rows');
  const large = await createCustomer(
    servers,
    'large_rows',
    ...tables,
    'create table p (a int) partition by list ((a % 2)); create table q partition of p default',
  );
  const queries = jest.spyOn(pg.Client.prototype, 'query');
  try {
    const countOf = async (move: Customer): Promise<number> => {
      queries.mockClear();
      expect(await ask(move)).toEqual([]);
      return queries.mock.calls.length;
    };
    expect(await countOf(large)).toBe(await countOf(empty));
    expect(queries.mock.calls.filter(([sql]) => String(sql).includes('pg_get_indexdef'))).toHaveLength(1);
    expect(queries.mock.calls.filter(([sql]) => String(sql).includes('pg_export_snapshot'))).toEqual([]);
  } finally {
    queries.mockRestore();
  }
});
