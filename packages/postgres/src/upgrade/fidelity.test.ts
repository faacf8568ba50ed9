/**
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { createCustomer, cutOver, endMove, startTwoServers, type TwoServers } from '../../test/two-servers';
import { runSql, withClient } from '../testing/run-sql';
import { catchUp } from './bring-level';
import { trySchema } from './check/try-schema';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';
import { finishTarget } from './finish';
import { withDatabase } from './session';

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers();
});
afterAll(() => servers.stop());

test('an owner can change after an upgrade what it could change before: its database’s comment and settings, its extensions, objects of several owners with their grants', async () => {
  const move = await createCustomer(
    servers,
    'kept_shop',
    // These functions are outside of public and name a type without its schema, as in IcingaDB.
    `create schema icinga; create domain icinga.bytea20 as bytea; set search_path = icinga; create table icinga.host (id bytea20 primary key);
     create function icinga.known(v bytea20) returns boolean language plpgsql as $$ declare found bytea20; begin return true; end $$;
     create function icinga.plain(v bytea) returns text language sql as $$ select encode(v::bytea20, 'hex') $$; set search_path = public`,
    `create extension hstore; comment on extension hstore is 'mine'; comment on database kept_shop is 'it''s mine'; alter database kept_shop set work_mem = '5MB'`,
    `create role kept_other; grant kept_other to kept_shop; grant usage, create on schema public to kept_other; create schema theirs authorization kept_other;
     set role kept_other; create table theirs.t (id int primary key, m hstore); create function theirs.f() returns int language sql security definer as 'select 1';
     revoke execute on function theirs.f() from public; grant select (id) on theirs.t to kept_shop; reset role;
     create table mine (id int primary key, other int references theirs.t); revoke all on schema public from public; grant usage on schema public to kept_other with grant option`,
    `insert into theirs.t values (1, 'a=>1'); insert into mine values (1, 1)`,
  );
  const facts = `select shobj_description(d.oid, 'pg_database') as comment, (select rolname from pg_roles where oid = datdba) as owner, (select string_agg(entry::text, ' ' order by entry::text) from unnest(coalesce(datacl, acldefault('d', datdba))) entry) as acl,
      (select setconfig::text from pg_db_role_setting where setdatabase = d.oid and setrole = 0) as settings,
      (select json_agg(json_build_array(extname, extowner::regrole::text, obj_description(oid, 'pg_extension')) order by 1) from pg_extension where extname = 'hstore') as extensions,
      (select json_agg(json_build_array(relname, relowner::regrole::text, relacl::text) order by relname) from pg_class where relnamespace in ('public'::regnamespace, 'theirs'::regnamespace) and relkind = 'r') as tables,
      (select json_agg(json_build_array(proname, proowner::regrole::text, proacl::text) order by proname) from pg_proc where pronamespace in ('icinga'::regnamespace, 'theirs'::regnamespace)) as functions,
      (select json_agg(json_build_array(nspname, nspowner::regrole::text, nspacl::text) order by nspname) from pg_namespace where nspname in ('public', 'icinga', 'theirs')) as schemas
    from pg_database d where datname = current_database()`;
  const admin = (side: 'old' | 'target'): Promise<Record<string, unknown>[]> =>
    runSql(withDatabase(servers[side].adminUrl, 'kept_shop'), facts);
  // The facts are read before the move, because the move revokes grants of the old database.
  const [before] = await admin('old');
  for (const stage of [copySchema, copyData, catchUp]) await stage(move);
  await cutOver(move);
  await finishTarget(move);
  const [after] = await admin('target');
  const withoutOurs = ({ acl, ...rest }: Record<string, unknown> = {}) => ({
    ...rest,
    acl: String(acl)
      .split(' ')
      .filter((entry) => !/^(?:pb|rp|sb|rd|ld)_[0-9a-f]{24}=/.test(entry)),
  });
  expect(withoutOurs(after)).toEqual(withoutOurs(before));
  await withClient(move.ownTargetUrl, async (client) => {
    await client.query(
      "alter extension hstore update; comment on extension hstore is 'still mine'; comment on database kept_shop is 'still mine'; set search_path = icinga; select known('\\x00')",
    );
  });
  await endMove(move);
});

test('a schema that the new version refuses is a finding before the upgrade begins: the object, the reason, and nothing else', async () => {
  const move = await createCustomer(
    servers,
    'refused_shop',
    'create table fine (id int primary key)',
    'create view writes as select buffers_backend from pg_stat_bgwriter',
  );
  const secret = randomBytes(32).toString('hex');
  const findings = await trySchema({ ...move, secret, fence: '0' });
  expect(findings).toEqual([
    {
      level: 'ERROR',
      code: 'statement_refused',
      detail: expect.stringMatching(
        /^VIEW public\.writes cannot be made in the new version: column "buffers_backend" does not exist\./,
      ),
    },
  ]);
  await expect(copySchema(move)).rejects.toMatchObject({
    code: 'statement_failed',
    isPermanent: true,
    object: 'VIEW public.writes',
  });
  await endMove(move);
});

test.each(['logical', 'offline'] as const)(
  'a CHECK whose function relies on the search path, or on rows of another table, goes over as it is, %s: with its comment, in force, validated or not',
  async (path) => {
    const databaseName = `checks_${path}`;
    const customer = await createCustomer(
      servers,
      databaseName,
      `create table limits (id int primary key, highest int); insert into limits values (1, 10);
     create function below(v int) returns boolean language sql as 'select v <= (select max(highest) from limits)';
     create domain small as int check (below(value));
     create table items (id int primary key, price int constraint is_below check (below(price)), size small); comment on constraint is_below on items is 'kept';
     create table parts (label text, constraint own_too check (below(price))) inherits (items); alter table parts add primary key (id);
     alter table items add constraint own_too check (below(price)); alter table items add constraint later check (below(price + 1)) not valid;
     create table months (id int, month int check (below(month)), primary key (id, month)) partition by range (month); create table first_half partition of months for values from (1) to (7);
     insert into items values (1, 5, 3); insert into parts values (2, 7, 2, 'a'); insert into months values (1, 4)`,
    );
    const move = { ...customer, path };
    const facts = `select coalesce(conrelid::regclass::text, contypid::regtype::text) as owner, conname as name, pg_get_constraintdef(oid) as definition, convalidated as validated, conislocal as is_local,
      coninhcount as inherited, obj_description(oid, 'pg_constraint') as comment from pg_constraint where contype = 'c' and connamespace = 'public'::regnamespace order by 1, 2`;
    const before = await runSql(withDatabase(servers.old.adminUrl, databaseName), facts);
    expect(before).toHaveLength(9);
    expect(
      (await trySchema({ ...move, secret: randomBytes(32).toString('hex'), fence: '0' })).map(({ detail }) => detail),
    ).toEqual([]);
    await copySchema(move);
    const change = (): Promise<unknown> =>
      runSql({ connectionString: move.ownUrl }, "insert into items values (3, 9, 9); update parts set label = 'b'");
    // On the offline path nobody may write after this point.
    if (path === 'offline') await change();
    await copyData(move);
    if (path === 'logical') await change();
    await catchUp(move);
    await cutOver(move);
    await finishTarget(move);
    expect(await runSql(withDatabase(servers.target.adminUrl, databaseName), facts)).toEqual(before);
    await withClient(move.ownTargetUrl, async (client) => {
      expect((await client.query('select count(*)::int as n from items')).rows).toEqual([{ n: 3 }]);
      for (const refused of [
        'insert into items values (4, 11, 1)',
        "insert into parts values (4, 11, 1, 'c')",
        'insert into items values (4, 1, 11)',
        'insert into first_half values (4, 6 * 2)',
      ])
        await expect(client.query(refused)).rejects.toMatchObject({ code: '23514' });
      await client.query("insert into parts values (5, 9, 9, 'd')");
    });
    await endMove(move);
  },
);

test('rows that the new version refuses end the copy with a permanent error that names their table', async () => {
  const move = await createCustomer(
    servers,
    'picky_shop',
    `create function is_open(id int) returns int immutable language sql as 'select id where current_setting(''app.open'')::boolean'; set app.open = 'yes';
     create table fine (id int primary key); insert into fine values (1);
     create table picky (id int primary key); create unique index on picky (is_open(id)); insert into picky values (1)`,
  );
  await copySchema(move);
  await expect(copyData(move)).rejects.toMatchObject({
    isPermanent: true,
    object: 'table "public"."picky"',
    reason: expect.stringContaining('app.open'),
  });
  await endMove(move);
});
