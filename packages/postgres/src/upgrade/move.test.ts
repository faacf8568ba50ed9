/** @processes */
import { until } from '@drydock/testing/wait';
import { createCustomer, cutOver, endMove, startTwoServers, type TwoServers } from '../../test/two-servers';
import { withClient } from '../testing/run-sql';
import { catchUp } from './bring-level';
import { checkUpgrade } from './check/prechecks';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';
import { finishTarget } from './finish';
import { withDatabase } from './session';

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers();
});
afterAll(() => servers.stop());

type Customer = Awaited<ReturnType<typeof createCustomer>>;
const rowsOf = <Row>(url: string, sql: string): Promise<Row[]> =>
  withClient(url, async (client) => (await client.query(sql)).rows);
const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  );

const moveUpTo = async (move: Customer): Promise<void> => {
  for (const stage of [copySchema, copyData, catchUp]) await stage(move);
};

test('roles are copied with passwords, memberships and settings, and so are changes of them during the copy of the rows', async () => {
  const move = await createCustomer(
    servers,
    'roles_shop',
    "create role roles_reader login password 'a-reader-s-password' connection limit 3 valid until '2031-01-01'; create role roles_group; grant roles_group to roles_reader with inherit false; comment on role roles_reader is 'it''s a reader'",
    'create table a (id int primary key); grant select on a to roles_group; grant connect on database roles_shop to roles_group',
    'alter role roles_reader set search_path = a, "B c"; alter role roles_reader in database roles_shop set work_mem = \'3MB\'',
  );
  await moveUpTo(move);
  await withClient(move.ownUrl, (client) =>
    client.query(
      "alter role roles_reader password 'another-password'; revoke roles_group from roles_reader; create role roles_late; drop role roles_late",
    ),
  );
  await cutOver(move);
  const sql = `select rolname, shobj_description(r.oid, 'pg_authid') as comment, rolconnlimit, rolvaliduntil, rolpassword, (select array_agg(setconfig order by setdatabase) from pg_db_role_setting where setrole = r.oid) as settings,
    (select json_agg(json_build_array(g.rolname, admin_option, inherit_option, set_option) order by g.rolname) from pg_auth_members m join pg_roles g on g.oid = m.roleid where m.member = r.oid) as groups
    from pg_authid r where rolname ~ '^roles_' order by 1`;
  const [before, after] = [await rowsOf(move.oldUrl, sql), await rowsOf(move.targetUrl, sql)];
  expect(after).toEqual(before);
  expect(after).toHaveLength(3);
  expect(after).toContainEqual(expect.objectContaining({ comment: "it's a reader" }));
  const reader = new URL(move.ownTargetUrl);
  reader.username = 'roles_reader';
  reader.password = 'another-password';
  expect(await codeOf(rowsOf(reader.href, 'select * from public.a'))).toBe('42501');
  await endMove(move);
});

test('content that replication does not carry is copied too: large objects, unlogged rows, sequences, range types, aggregates, forced row security, triggers that fire always', async () => {
  const move = await createCustomer(
    servers,
    'odd_shop',
    "create unlogged table cache (k int primary key, v text); insert into cache values (1, 'before')",
    "create sequence down increment -5; select nextval('down') from generate_series(1, 3)",
    "create table secret (id int primary key, v text); alter table secret enable row level security; alter table secret force row level security; create policy p on secret using (true); insert into secret values (1, 'a')",
    'create table log (id int primary key, n int default 0); create table log_of_log (id int)',
    'create function note() returns trigger language plpgsql as $$ begin insert into public.log_of_log values (new.id); return new; end $$; create trigger always after insert on log for each row execute function note(); alter table log enable always trigger always',
    "select lo_from_bytea(90001, 'one'), lo_from_bytea(90002, 'two'), lo_from_bytea(90003, 'three'); comment on large object 90001 is 'kept'",
    'create type stretch as range (subtype = int4); create aggregate total (int) (sfunc = int4pl, stype = int)',
    'create table keyless (a int, b text); insert into keyless select i, i::text from generate_series(1, 100) i',
    'create unlogged table parents (id int primary key); create unlogged table children (parent int references parents)',
    'insert into parents values (1), (2); insert into children values (1)',
  );
  await moveUpTo(move);
  await withClient(move.ownUrl, async (client) => {
    await client.query(
      "update cache set v = 'after'; select nextval('down'); insert into secret values (2, 'b'); insert into log (id) values (1), (2)",
    );
    await client.query(
      "update children set parent = 2; delete from parents where id = 1; select lo_put(90002, 0, 'TWO'), lo_unlink(90003), lo_from_bytea(90004, 'four'); update keyless set b = 'x' where a = 5; delete from keyless where a = 6",
    );
  });
  await cutOver(move);
  expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'equal', names: [] });
  expect(await rowsOf(move.ownTargetUrl, 'select k, v from cache')).toEqual([{ k: 1, v: 'after' }]);
  expect(await rowsOf(move.ownTargetUrl, 'select id, parent from parents join children on true')).toEqual([
    { id: 2, parent: 2 },
  ]);
  expect(await rowsOf(move.ownTargetUrl, "select nextval('down')::int as n")).toEqual([{ n: -21 }]);
  expect(await rowsOf(move.ownTargetUrl, 'select count(*)::int as n from log_of_log')).toEqual([{ n: 2 }]);
  expect(
    await rowsOf(
      move.ownTargetUrl,
      "select relforcerowsecurity as forced, (select tgenabled from pg_trigger where tgname = 'always') as fires from pg_class where relname = 'secret'",
    ),
  ).toEqual([{ forced: true, fires: 'A' }]);
  const objects = await rowsOf<{ text: string }>(
    move.ownTargetUrl,
    "select convert_from(lo_get(oid), 'UTF8') as text from pg_largeobject_metadata order by oid",
  );
  expect(objects.map(({ text }) => text)).toEqual(['one', 'TWO', 'four']);
  await finishTarget(move);
  expect(
    await rowsOf(
      move.ownTargetUrl,
      "select nspname from pg_namespace where nspname ~ 'drydock' union all select subname from pg_subscription",
    ),
  ).toEqual([]);
  await endMove(move);
});

test('the comparison finds a row that is missing on the new server', async () => {
  const move = await createCustomer(
    servers,
    'missing_shop',
    'create table a (id int primary key); insert into a select generate_series(1, 10); create table b (id int primary key)',
  );
  await moveUpTo(move);
  await cutOver(move);
  await withClient(move.ownTargetUrl, (client) => client.query('delete from a where id = 3'));
  expect(await compareDatabases(move, null)).toEqual({
    outcome: 'undecided',
    tables: 2,
    names: ['"public"."a"'],
    recomputed: [],
  });
  await endMove(move);
});

test('the comparison finds columns by name, because an inheriting table may have them in another order on the new server', async () => {
  const move = await createCustomer(
    servers,
    'order_shop',
    'create table base (a int); create table child (b int) inherits (base); alter table base add c int',
    'insert into child (a, b, c) values (1, 2, 3)',
    'create table blank (); insert into blank default values',
  );
  await moveUpTo(move);
  await cutOver(move);
  expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'equal', names: [] });
  await withClient(move.ownTargetUrl, (client) => client.query('update child set b = 3, c = 2'));
  expect(await compareDatabases(move, null)).toMatchObject({ names: ['"public"."child"'] });
  await endMove(move);
});

/** Runs work while a snapshot of the new database is open, as after the cutover. */
const atSnapshot = (move: Customer, work: (id: string) => Promise<void>): Promise<void> =>
  withClient(withDatabase(move.targetUrl, move.databaseName), async (client) => {
    await client.query('begin isolation level repeatable read read only');
    await work((await client.query('select pg_export_snapshot() as id')).rows[0].id);
  });

const isLockAwaited = (url: string, name: string) =>
  until(() =>
    withClient(withDatabase(url, name), async (client) => {
      const sql =
        'select from pg_locks where not granted and database = (select oid from pg_database where datname = $1)';
      return (await client.query(sql, [name])).rowCount === 1;
    }),
  );

test('what the owner has altered since the cutover leaves the comparison undecided, and a row that was lost before is still a difference', async () => {
  const names = ['kept', 'cut', 'wider', 'narrower', 'retyped', 'dropped', 'renamed', 'again', 'moody', 'lost'];
  const move = await createCustomer(
    servers,
    'altered_shop',
    "create type mood as enum ('good')",
    ...names.map((name) => `create table ${name} (id serial primary key, v text, m mood)`),
    ...names.map((name) => `insert into ${name} (v, m) select i, 'good' from generate_series(1, 3) i`),
    'create materialized view sums as select sum(id) from kept; create materialized view gone as select 1 as n',
    "update moody set m = 'good'; alter table kept alter m type text; alter table cut alter m type text",
    'alter table wider alter m type text; alter table lost alter m type text',
  );
  await moveUpTo(move);
  await cutOver(move);
  const altered = ['cut', 'narrower', 'retyped', 'dropped', 'renamed', 'again', 'moody'].map(
    (name) => `"public"."${name}"`,
  );
  await atSnapshot(move, async (id) => {
    await withClient(move.ownTargetUrl, (client) =>
      client.query(`truncate cut restart identity; insert into cut (v) values ('new');
        alter table wider add n int default 7; insert into kept (v) values ('new'); alter table narrower drop column v;
        alter table retyped alter v type int using 7; drop table dropped; alter table renamed rename to renamed_since;
        drop table again; create table again (id int); alter type mood rename value 'good' to 'fine';
        refresh materialized view sums; drop materialized view gone`),
    );
    const compared = await compareDatabases(move, id);
    expect(compared).toMatchObject({ outcome: 'undecided', recomputed: [] });
    expect([...compared.names].sort()).toEqual(
      [...altered, ...['again', 'cut', 'dropped'].map((name) => `sequence "public"."${name}_id_seq"`)].sort(),
    );
    await withClient(move.ownTargetUrl, (client) => client.query('delete from lost where id = 1'));
    expect((await compareDatabases(move, id)).outcome).toBe('undecided');
  });
  await atSnapshot(move, async (id) => {
    const { outcome, names: found } = await compareDatabases(move, id);
    expect([outcome, found.includes('"public"."lost"'), found.includes('"public"."kept"')]).toEqual([
      'different',
      true,
      true,
    ]);
  });
  await endMove(move);
});

test('a table that was compared can be altered, and a sequence can be set back, while the comparison reads another table', async () => {
  const move = await createCustomer(
    servers,
    'released_shop',
    'create table a (id int primary key); create table z (id int primary key)',
    "create sequence counted; select setval('counted', 7)",
  );
  await moveUpTo(move);
  await cutOver(move);
  await atSnapshot(move, (id) =>
    withClient(move.ownTargetUrl, async (holder) => {
      await holder.query('begin; lock table z');
      const comparing = compareDatabases(move, id);
      try {
        await isLockAwaited(move.targetUrl, move.databaseName);
        await withClient(move.ownTargetUrl, (client) =>
          client.query("set lock_timeout = '3s'; alter table a add b int; select setval('counted', 1)"),
        );
      } finally {
        await holder.query('commit');
      }
      expect(await comparing).toMatchObject({ outcome: 'equal', tables: 2 });
    }),
  );
  await endMove(move);
});

test('a table without a key takes rows while the copy waits for a transaction that reads it', async () => {
  const move = await createCustomer(servers, 'patient_shop', 'create table keyless (a int)');
  await copySchema(move);
  await withClient(move.ownUrl, async (reader) => {
    await reader.query('begin; select from keyless');
    const copying = copyData(move);
    try {
      await isLockAwaited(move.oldUrl, move.databaseName);
      await withClient(move.ownUrl, (client) =>
        client.query("set statement_timeout = '3s'; insert into keyless values (1)"),
      );
    } finally {
      await reader.query('commit');
      await copying;
    }
  });
  expect(await rowsOf(withDatabase(move.targetUrl, move.databaseName), 'select a from keyless')).toEqual([{ a: 1 }]);
  await endMove(move);
});

test('a schema public that the owner has dropped does not come back', async () => {
  const move = await createCustomer(
    servers,
    'private_shop',
    'drop schema public; create schema shop; create table shop.a (id int primary key)',
  );
  await copySchema(move);
  const sql = "select nspname as name from pg_namespace where nspname in ('public', 'shop')";
  expect(await rowsOf(withDatabase(move.targetUrl, move.databaseName), sql)).toEqual([{ name: 'shop' }]);
  await endMove(move);
});

test('changes of the schema are refused during a move, temporary tables are not, and a schema change that has begun is waited for', async () => {
  const move = await createCustomer(
    servers,
    'ddl_shop',
    'create table a (id int primary key)',
    'create materialized view mv as select count(*) from a',
    'create table unused (a int)',
  );
  await withClient(move.ownUrl, async (client) => {
    await client.query('begin; create table just_made (id int primary key)');
    const copying = copySchema(move);
    await until(() =>
      withClient(
        withDatabase(move.oldUrl, 'ddl_shop'),
        async (admin) => (await admin.query('select from pg_event_trigger')).rowCount === 2,
      ),
    );
    await client.query('commit');
    await copying;
    for (const refused of [
      'create table c (a int)',
      'alter table a add b int',
      'drop table unused',
      'create index on a (id)',
      'grant select on a to public',
      "comment on table a is 'x'",
    ])
      expect([refused, await codeOf(client.query(refused))]).toEqual([refused, '55006']);
    for (const taken of [
      'create temp table t (a int)',
      'alter table t add b int',
      'drop table t',
      'refresh materialized view mv',
      'truncate a',
      'analyze a',
    ])
      expect([taken, await codeOf(client.query(taken))]).toEqual([taken, 'done']);
  });
  expect(
    await rowsOf(withDatabase(move.targetUrl, 'ddl_shop'), "select relname from pg_class where relname = 'just_made'"),
  ).toHaveLength(1);
  await endMove(move);
});

test('prechecks distinguish tables with and without a key, and types with and without an equality', async () => {
  const check = async (name: string, columns: string) => {
    const move = await createCustomer(
      servers,
      name,
      `create type mood as enum ('a'); create domain email as text; create type pair as (a int, b email[])`,
      `create type odd as (a int, b json); create domain spots as point[]; create table t (${columns})`,
    );
    const request = { url: move.oldUrl, databaseName: name, toMajor: 18, extensionsOfTarget: [], freeBytes: 1e12 };
    return (await checkUpgrade(request)).path;
  };
  expect(
    await check(
      'check_plain',
      'a int, b text, c varchar(3), d mood, e email, f int[], g jsonb, h uuid, i int4range, j char(3), k numeric, l pair[]',
    ),
  ).toBe('logical');
  expect(await check('check_json', 'a int, b json')).toBe('offline');
  expect(await check('check_point', 'a int, b point')).toBe('offline');
  expect(await check('check_array', 'a int, b json[]')).toBe('offline');
  expect(await check('check_domain', 'a int, b spots')).toBe('offline');
  expect(await check('check_composite', 'a int, b odd')).toBe('offline');
  expect(await check('check_full', 'a int, b json); alter table t replica identity full; create table u (a int')).toBe(
    'offline',
  );
  expect(await check('check_keyed', 'a int primary key, b json')).toBe('logical');
  expect(
    await check(
      'check_nothing',
      'a int primary key, b json); alter table t replica identity nothing; create table u (a int',
    ),
  ).toBe('offline');
});

test('prechecks choose the offline path if the key that replication would use is computed', async () => {
  const check = async (name: string, ...statements: string[]) => {
    const { oldUrl: url } = await createCustomer(servers, name, ...statements);
    return (await checkUpgrade({ url, databaseName: name, toMajor: 18, extensionsOfTarget: [], freeBytes: 1e12 })).path;
  };
  const table = 'create table t (a int not null unique, g int generated always as (a) stored primary key)';
  expect(await check('check_computed', table)).toBe('offline');
  expect(await check('check_computed_full', table, 'alter table t replica identity full')).toBe('offline');
  expect(await check('check_chosen', table, 'alter table t replica identity using index t_a_key')).toBe('logical');
  expect(await check('check_beside', table.replace('primary key', ''))).toBe('logical');
});

test('concurrent prechecks for two majors do not disturb each other', async () => {
  const { oldUrl: url, databaseName } = await createCustomer(
    servers,
    'check_twice',
    'create table t (a int primary key)',
  );
  const check = (toMajor: number) =>
    checkUpgrade({ url, databaseName, toMajor, extensionsOfTarget: [], freeBytes: 1e12 });
  for (let round = 0; round < 5; round += 1) {
    const judged = await Promise.all([check(17), check(18)]);
    expect(judged.map(({ path }) => path)).toEqual(['logical', 'logical']);
  }
});
