/** @tier long */
import { createOwnedDatabase, runAsAdmin } from '../../test/databases';
import { dumpDatabase } from '../dump/dump-database';
import { fingerprintDatabase } from '../dump/fingerprint-database';
import { runSql } from '../testing/run-sql';
import { loadDatabase } from './load-database';

/**
 * Hostile code of a customer. It tries SET ROLE NONE and other ways to more rights, and records the roles with which it
 * ran.
 */
const spy = `
  create table ran (who text, login text, powerful boolean);
  create function spy() returns boolean language plpgsql volatile as $$
  declare mine text := current_user;
  begin
    begin set local role none; exception when others then null; end;
    begin alter role current_user superuser; exception when others then null; end;
    begin execute 'copy (select 1) to program ''true'''; raise exception using errcode = 'ZZZZZ', message = 'a shell was had'; exception when insufficient_privilege then null; end;
    begin execute format('set local role %I', mine); exception when others then null; end;
    insert into public.ran select current_user, session_user, exists (select from pg_catalog.pg_roles r where r.rolname in (current_user, session_user)
      and (r.rolsuper or r.rolbypassrls or r.rolcreaterole or r.rolreplication or pg_catalog.pg_has_role(r.oid, 'pg_read_all_data', 'member')));
    return true;
  end $$;
  create function spy_int(int) returns int language plpgsql immutable as $$ begin perform public.spy(); return $1; end $$;
  create function spy_text(int) returns text language plpgsql immutable as $$ begin perform public.spy(); return $1; end $$;
  create function spy_trigger() returns trigger language plpgsql as $$ begin perform public.spy(); return new; end $$;`;

const places: [string, string][] = [
  ['a CHECK of an unlogged table', 'create unlogged table t (a int check (public.spy_int(a) is not null))'],
  ['a domain', 'create domain d as int check (public.spy_int(value) is not null); create table t (a d)'],
  ['a default', 'create table t (a int, b int default public.spy_int(1))'],
  ['a generated column', 'create table t (a int, b int generated always as (public.spy_int(a)) stored)'],
  ['an expression of an index', 'create table t (a int); create index on t (public.spy_int(a))'],
  ['a condition of an index', 'create table t (a int); create index on t (a) where public.spy_int(a) > 0'],
  ['a rule', 'create table t (a int); create rule r as on insert to t do also select public.spy()'],
  [
    'a trigger that always fires',
    'create table t (a int); create trigger x before insert on t for each row execute function public.spy_trigger(); alter table t enable always trigger x',
  ],
  [
    'a policy that is forced',
    'create table t (a int); create policy p on t using (public.spy()); alter table t enable row level security; alter table t force row level security',
  ],
  [
    'a cast to text',
    `create type odd as (a int); create function tell(odd) returns text language plpgsql as $$ begin perform public.spy(); return 'x'; end $$;
    create cast (odd as text) with function tell(odd); create table t (a odd)`,
  ],
  [
    'a cast of a row to text',
    `create table t (a int); create function tell(t) returns text language plpgsql as $$ begin perform public.spy(); return 'x'; end $$;
    create cast (t as text) with function tell(t)`,
  ],
  ['a materialised view', 'create table t (a int); create materialized view m as select public.spy_int(1) as a'],
  ['statistics', 'create table t (a int); create statistics st on (public.spy_int(a)), a from t'],
  [
    'a comparison of its own',
    `create table t (a int); create function pg_catalog_like(text, bigint) returns bigint language plpgsql as $$ begin perform public.spy(); return 1; end $$`,
  ],
];
const fill = (sql: string): string =>
  sql.includes(' odd)') ? 'insert into t values (row(1)::odd)' : 'insert into t (a) values (1)';

test.each(places)('%s runs as the owner or not at all, through dump, load and comparison', async (_what, sql) => {
  const source = await createOwnedDatabase();
  await runSql(source.url, `${spy} ${sql}; ${fill(sql)}; truncate ran`);
  const target = await createOwnedDatabase();
  await loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }) });
  await fingerprintDatabase({ url: source.readerUrl });
  expect(await runSql(source.adminUrl, 'select * from public.ran')).toEqual([]);
  const loader = new URL(target.loader.url).username;
  for (const row of await runSql(target.adminUrl, 'select * from public.ran'))
    expect(row).toEqual({ who: target.name, login: loader, powerful: false });
  expect(
    await runAsAdmin('select rolname from pg_roles where rolsuper and rolname = any ($1)', [
      [source.name, target.name, loader],
    ]),
  ).toEqual([]);
});

test('a load whose code sleeps is ended, says which object it was, and leaves no session', async () => {
  const source = await createOwnedDatabase();
  await runSql(
    source.url,
    `create function nap(int) returns boolean language plpgsql as $$ begin
       if current_setting('role') = '${source.name}' then return true; end if;
       perform set_config('statement_timeout', '0', false), set_config('client_connection_check_interval', '0', false), pg_sleep(3600); return true; end $$;
     set role ${source.name}; create table t (a int constraint slow check (nap(a))); insert into t values (1)`,
  );
  const target = await createOwnedDatabase();
  const load = loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }), baseMs: 8_000 });
  await expect(load).rejects.toMatchObject({
    code: 'stalled',
    isPermanent: true,
    object: 'constraint "slow" of table "public"."t"',
  });
  const left = 'select count(*)::int as n from pg_stat_activity where datname = $1';
  for (let n = 1; n > 0; ) n = (await runAsAdmin<{ n: number }>(left, [target.name]))[0]?.n ?? 0;
});
