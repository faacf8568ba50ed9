/**
 * Owners and rights of objects after the restore of a managed database.
 *
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { type Customer, createCustomer, startTwoServers, type TwoServers } from '../../test/two-servers';
import { dumpDatabase } from '../dump/dump-database';
import { runSql } from '../testing/run-sql';
import { withDatabase, withStage } from '../upgrade/session';
import { makeEmptyRestored, makeMentionedRoles, ownersOf } from '../upgrade/target-database';
import { loadDatabase } from './load-database';
import type { LoadFinding } from './load-request';

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers(undefined, [17, 18]);
});
afterAll(() => servers.stop());

const unique = (what: string): string => `${what}_${randomBytes(4).toString('hex')}`;

/**
 * Backs a database up and restores it as the database agent does, but without a proxy and an archive. The customer runs
 * the statements of `between` after the backup.
 */
async function restored(
  customer: Customer,
  between: string[] = [],
  { withOwners = true } = {},
): Promise<{ findings: LoadFinding[] }> {
  const { databaseName } = customer;
  const sections: { path: string; parts: Buffer[] }[] = [];
  for await (const { path, content } of dumpDatabase({
    url: withDatabase(customer.oldUrl, databaseName),
    withOwners,
  })) {
    const parts: Buffer[] = [];
    for await (const part of content) parts.push(part);
    sections.push({ path, parts });
  }
  for (const statement of between) await runSql(customer.ownUrl, statement);
  async function* again() {
    for (const { path, parts } of sections)
      yield {
        path,
        content: (async function* () {
          yield* parts;
        })(),
      };
  }
  return withStage({ ...customer, path: 'restore' }, async (stage) => {
    const role = await makeEmptyRestored(stage);
    const server = await stage.server('target');
    const makeRoles = (names: string[]): Promise<void> => makeMentionedRoles(server, names);
    return loadDatabase({
      url: await stage.loaderUrl(role),
      role,
      sections: again(),
      makeRoles,
      owners: ownersOf(stage),
    });
  });
}

/** The catalogue of each kind of object, with its columns for owner, rights and schema. */
const catalogues = [
  [
    "'relation'",
    'oid::regclass::text',
    'relowner',
    'relacl',
    `case relkind when 'S' then 's' else 'r' end::"char"`,
    'relnamespace',
    "pg_class where relkind in ('r', 'p', 'v', 'm', 'S')",
  ],
  ["'function'", 'oid::regprocedure::text', 'proowner', 'proacl', "'f'", 'pronamespace', 'pg_proc'],
  ["'type'", 'oid::regtype::text', 'typowner', 'typacl', "'T'", 'typnamespace', "pg_type where typtype in ('e', 'd')"],
  ["'schema'", 'nspname', 'nspowner', 'nspacl', "'n'", 'oid', 'pg_namespace'],
  ["'large object'", 'oid::text', 'lomowner', 'lomacl', "'L'", "'public'::regnamespace", 'pg_largeobject_metadata'],
] as const;
/** Reads each object's owner and rights as a superuser. */
const ownersSql = `select kind, object, pg_get_userbyid(o) as owner, acl from (${catalogues
  .map(
    ([kind, object, owner, rights, letter, schema, place]) =>
      `select ${kind}, ${object}, ${owner}, array(select a::text from unnest(coalesce(${rights}, acldefault(${letter}, ${owner}))) a order by 1), ${schema} from ${place}`,
  )
  .join(
    ' union all ',
  )}) x (kind, object, o, acl, n) join pg_namespace s on s.oid = n and s.nspname !~ '^pg_' and s.nspname <> 'information_schema' order by 1, 2`;

const ownersAt = (url: string, { databaseName }: Customer): Promise<unknown[]> =>
  runSql(withDatabase(url, databaseName), ownersSql);

test('every object has its owner and its grants again, even if the owner could not create it any more', async () => {
  const [name, app, worker] = [unique('whole'), unique('app'), unique('"Worker')];
  const odd = `${worker}"`;
  const customer = await createCustomer(
    servers,
    name,
    `set createrole_self_grant = 'set, inherit'`,
    `create role ${app}`,
    `create role ${odd}`,
    `grant ${app}, ${odd} to ${name} with set true, inherit true`,
    `grant create on schema public to ${app}; grant create on database ${name} to ${odd}`,
    'create function plain(text) returns text language sql immutable as $$ select lowered($1) $$'.replace(
      'lowered',
      'lower',
    ),
    'create table of_owner (id int primary key, note text); insert into of_owner values (1, $$one$$), (2, $$two$$)',
    `grant select, references, trigger on of_owner to ${app} with grant option`,
    `set role ${app}`,
    "create type mood as enum ('fine'); create domain short as text check (length(value) < 9)",
    `create function is_known(int) returns boolean language plpgsql as 'begin return exists (select from of_owner where id = $1); end'`,
    `create table of_app (id serial primary key, owner_id int references of_owner constraint known check (is_known(owner_id)), mood mood, word short)`,
    "insert into of_app (owner_id, mood, word) values (1, 'fine', 'a'), (2, 'fine', 'b')",
    'create index by_word on of_app (plain(word))',
    'create materialized view summary as select o.note, a.word from of_owner o join of_app a on a.owner_id = o.id',
    'create table parts (id int) partition by hash (id)',
    'create table parts_0 partition of parts for values with (modulus 1, remainder 0); insert into parts values (1), (2)',
    `create function definer() returns text language sql security definer as 'select current_user::text'`,
    `revoke execute on function definer() from public; grant execute on function definer() to ${odd}`,
    `grant select on of_app to ${odd} with grant option; grant select on of_owner to ${odd}; revoke insert on of_app from ${app}`,
    `alter default privileges in schema public grant select on tables to ${odd}`,
    `select lo_from_bytea(91, 'object'); grant select on large object 91 to ${odd}`,
    `set role ${odd}`,
    `create schema hidden; create table hidden.kept (id int, word short); insert into hidden.kept values (1, 'x'); create index on hidden.kept (id)`,
    'create view hidden.seen as select * from of_app',
    `grant usage on schema hidden to ${name}; grant select on of_app to ${name}`,
    'reset role',
    `revoke create on schema public from ${app}; revoke create on database ${name} from ${odd}`,
    `alter schema public owner to ${name}`,
  );
  const before = await ownersAt(customer.oldUrl, customer);
  const known = await runSql<{ owner: string }>(
    withDatabase(customer.oldUrl, name),
    `select distinct owner from (${ownersSql}) o`,
  );
  expect(new Set(known.map(({ owner }) => owner))).toEqual(new Set([name, app, odd.replaceAll('"', '')]));
  const { findings } = await restored(customer);
  expect(findings).toEqual([]);
  expect(await ownersAt(customer.targetUrl, customer)).toEqual(before);
  const target = withDatabase(customer.targetUrl, name);
  const counts = `select (select count(*)::int from of_app) as app, (select count(*)::int from parts) as parts, (select count(*)::int from summary) as summary,
    (select count(*)::int from hidden.kept) as kept, (select convalidated from pg_constraint where conname = 'known') as valid, lo_get(91)::text as object,
    (select count(*)::int from pg_indexes where indexname in ('by_word', 'kept_id_idx')) as indexes, nextval('of_app_id_seq')::int as next`;
  const object = `\\x${Buffer.from('object').toString('hex')}`;
  expect(await runSql(target, counts)).toEqual([
    { app: 2, parts: 2, summary: 2, kept: 1, valid: true, object, indexes: 2, next: 3 },
  ]);
  const left = "select rolname from pg_roles where rolname ~ '^(ld|rd)_'";
  expect(await runSql(customer.targetUrl, left)).toEqual([]);
});

/** Runs a statement as a role on the restored database, and returns its rows. Several statements return no rows. */
const as = async (customer: Customer, role: string, sql: string): Promise<unknown[]> => {
  const target = new URL(withDatabase(customer.targetUrl, customer.databaseName));
  target.searchParams.set('options', `-c role=${role}`);
  return runSql(target.href, sql);
};

const secretsOf = (app: string): string[] => [
  `set createrole_self_grant = 'set, inherit'`,
  `create role ${app}; grant create on schema public to ${app}`,
  "create table secrets (word text); insert into secrets values ('hidden')",
  `set role ${app}`,
  "create function peek() returns text language sql security definer as 'select word from public.secrets'",
  'create view seen as select word from public.shared',
  'create table mine (id int); insert into mine values (1); grant select on mine to public',
  'reset role',
];

test('a SECURITY DEFINER function of a role that could not read a table cannot read it after a restore', async () => {
  const [name, app] = [unique('definer'), unique('app')];
  const [first, second, ...rest] = secretsOf(app).filter((statement) => !statement.includes('seen'));
  const customer = await createCustomer(
    servers,
    name,
    first ?? '',
    second ?? '',
    ...rest.slice(0, 1),
    'set check_function_bodies = off',
    ...rest.slice(1),
  );
  await expect(runSql(customer.ownUrl, 'select peek()')).rejects.toThrow('permission denied for table secrets');
  const { findings } = await restored(customer);
  expect(findings).toEqual([]);
  await expect(as(customer, name, 'select peek()')).rejects.toThrow('permission denied for table secrets');
  expect(await as(customer, app, 'insert into mine values (2); select 1')).toEqual([]);
  expect(await as(customer, app, 'select id from mine order by 1')).toEqual([{ id: 1 }, { id: 2 }]);
});

test('code of a role that runs while a restore computes runs as that role and as nobody else', async () => {
  const [name, app] = [unique('hostile'), unique('app')];
  const spying = `begin
    begin perform set_config('role', 'none', false); exception when others then null; end;
    begin execute 'set role ${name}'; exception when others then null; end;
    begin execute 'insert into public.ran values (session_user || current_user)'; exception when others then null; end;
    begin execute 'insert into public.looted select word from public.secrets'; exception when others then null; end;
    end`;
  const customer = await createCustomer(
    servers,
    name,
    `set createrole_self_grant = 'set, inherit'`,
    `create role ${app}; grant create on schema public to ${app}`,
    "create table secrets (word text); insert into secrets values ('hidden')",
    `set role ${app}`,
    'create table ran (who text); create table looted (word text)',
    "create function act() returns void language plpgsql as 'begin end'",
    'create function spy(int) returns boolean language plpgsql immutable as $$ begin perform public.act(); return true; end $$',
    'create table checked (id int); insert into checked values (1)',
    'create index by_spy on checked (spy(id))',
    'alter table checked add constraint spying check (spy(id))',
    'create materialized view spied as select spy(id) as yes from checked',
    `create or replace function act() returns void language plpgsql as $$ ${spying} $$`,
    'reset role',
    `revoke create on schema public from ${app}`,
  );
  await restored(customer);
  const target = withDatabase(customer.targetUrl, name);
  expect(await runSql(target, 'select word from looted')).toEqual([]);
  const roles = await runSql<{ who: string }>(target, 'select distinct who from ran');
  expect(roles.length).toBeGreaterThan(0);
  expect(roles.filter(({ who }) => who.includes(name))).toEqual([]);
  expect(
    await runSql(target, "select count(*)::int as n from pg_constraint where conname = 'spying' and convalidated"),
  ).toEqual([{ n: 1 }]);
});

test('objects of a missing role become those of the database’s owner, nobody else may run code that had the role’s rights, and a finding names all of them', async () => {
  const [name, app, guest] = [unique('left'), unique('app'), unique('guest')];
  const customer = await createCustomer(
    servers,
    name,
    'set check_function_bodies = off',
    `create role ${guest}`,
    "create table shared (word text); insert into shared values ('for all')",
    ...secretsOf(app).slice(0, 2),
    `grant select on shared to ${app}`,
    ...secretsOf(app).slice(2, -1),
    `grant execute on function peek() to ${guest}; grant select on seen, mine to ${guest}`,
    'reset role',
  );
  const between = [`reassign owned by ${app} to ${name}`, `drop owned by ${app}`, `drop role ${app}`];
  const { findings } = await restored(customer, between);
  expect(findings).toEqual([
    { kind: 'not_restored', object: expect.stringContaining(`TO ${app}`), reason: 'its role is not here' },
    { kind: 'not_restored', object: expect.stringContaining(`TO ${app}`), reason: 'its role is not here' },
    {
      kind: 'owner_changed',
      object: 'function public.peek, table public.mine, view public.seen',
      reason: `role ${app} of the backup is not here. Nobody else may use what ran with the rights of ${app}: function public.peek(), view public.seen. Look at it, then grant what is needed`,
    },
  ]);
  for (const sql of ['select peek()', 'select * from seen'])
    await expect(as(customer, guest, sql)).rejects.toThrow('permission denied');
  expect(await as(customer, guest, 'select id from mine')).toEqual([{ id: 1 }]);
  expect(await as(customer, name, 'select peek() as word')).toEqual([{ word: 'hidden' }]);
});

test('grants on ordinary functions of a missing role come back, and none on what ran with its rights', async () => {
  const [name, app, guest, other] = [unique('grants'), unique('app'), unique('guest'), unique('other')];
  const ordinary = ['function plain(int, word text)', 'procedure work()', 'aggregate total(int)'];
  const kept = ['function peek("in" "Mood", "first Name" text)', 'procedure act()'];
  const grantAll = (what: string): string[] => [
    `revoke all on ${what.replace('aggregate', 'function')} from public`,
    `grant execute on ${what.replace('aggregate', 'function')} to ${guest} with grant option`,
  ];
  const customer = await createCustomer(
    servers,
    name,
    `set createrole_self_grant = 'set, inherit'`,
    `create role ${app}; create role ${guest}; create role ${other}; grant create on schema public to ${app}`,
    "create table shared (word text); insert into shared values ('for all')",
    `grant select on shared to ${app}`,
    `set role ${app}`,
    `create type "Mood" as enum ('fine')`,
    'create function plain(int, word text) returns int language sql as $$ select 1 $$',
    'create procedure work() language sql as $$ select 1 $$',
    'create aggregate total(int) (sfunc = int4pl, stype = int)',
    'create function peek("in" "Mood", "first Name" text) returns int language sql security definer as $$ select 1 $$',
    'create procedure act() language sql security definer as $$ select 1 $$',
    'create view seen as select word from shared',
    ...[...ordinary, ...kept].flatMap(grantAll),
    `grant select on seen to ${guest} with grant option`,
    `set role ${guest}`,
    ...[...ordinary, ...kept].map((what) => `grant execute on ${what.replace('aggregate', 'function')} to ${other}`),
    `grant select on seen to ${other}`,
    'reset role',
  );
  const { findings } = await restored(customer, [
    `reassign owned by ${app} to ${name}`,
    `drop owned by ${app} cascade`,
    `drop role ${app}`,
  ]);
  const changed = findings.filter(({ kind }) => kind === 'owner_changed').map(({ reason }) => reason);
  expect(changed).toEqual([expect.stringContaining(`ran with the rights of ${app}: `)]);
  for (const object of ['function public.peek(', 'procedure public.act()', 'view public.seen'])
    expect(changed[0]).toContain(object);
  const target = withDatabase(customer.targetUrl, name);
  const may = `select proname from pg_proc where pronamespace = 'public'::regnamespace
    and has_function_privilege($role$%$role$, oid, 'execute') order by 1`;
  for (const role of [guest, other]) {
    const names = await runSql(target, may.replace('%', role));
    expect(names).toEqual([{ proname: 'plain' }, { proname: 'total' }, { proname: 'work' }]);
    expect(await runSql(target, `select has_table_privilege('${role}', 'seen', 'select') as may`)).toEqual([
      { may: false },
    ]);
  }
});

test('a backup without owners gives every object to the database’s owner, and a finding says so', async () => {
  const [name, app] = [unique('earlier'), unique('app')];
  const customer = await createCustomer(
    servers,
    name,
    'set check_function_bodies = off',
    ...secretsOf(app).filter((statement) => !statement.includes('seen')),
  );
  const { findings } = await restored(customer, [], { withOwners: false });
  expect(findings).toMatchObject([{ kind: 'owner_changed', object: 'Every object of the backup' }]);
  expect(await as(customer, name, 'select id from mine')).toEqual([{ id: 1 }]);
});

test('code that raises a denial itself is lent no rights', async () => {
  const [name, app] = [unique('pleading'), unique('app')];
  const customer = await createCustomer(
    servers,
    name,
    `create role ${app}; grant create on schema public to ${app}; grant ${app} to ${name} with set true, inherit false`,
    "create table secrets (word text); insert into secrets values ('hidden')",
    `set role ${app}`,
    'create table looted (word text)',
    'create function plead(int) returns int language plpgsql immutable as $$ begin return $1; end $$',
    'create table zeal (id int, double int generated always as (plead(1) + id) stored); insert into zeal (id) values (1)',
    'alter table zeal add constraint pleaded exclude (plead(id) with =)',
    `create or replace function plead(int) returns int language plpgsql immutable as $$ begin
       begin execute 'grant select on public.secrets to ${app}'; exception when others then null; end;
       if not has_table_privilege('public.secrets', 'select') then raise insufficient_privilege; end if;
       return $1; end $$`,
    'reset role',
  );
  await expect(restored(customer)).rejects.toMatchObject({ code: 'statement_failed', isPermanent: true });
  const may = `select has_table_privilege('${app}', 'public.secrets', 'select') as may`;
  expect(await runSql(withDatabase(customer.targetUrl, name), may)).toEqual([{ may: false }]);
});

test('code that the bound of a partition calls is lent no rights', async () => {
  const [name, app] = [unique('bound'), unique('app')];
  const customer = await createCustomer(
    servers,
    name,
    `create role ${app}; grant create on schema public to ${app}; grant ${app} to ${name} with set true, inherit true`,
    'create table secrets (word text)',
    `set role ${app}`,
    'create function plead(int) returns int language plpgsql immutable as $$ begin return $1; end $$',
    "create function same(int, int) returns boolean language sql immutable as 'select public.plead($1) = $2'",
    'create operator === (function = same, leftarg = int, rightarg = int)',
    'create domain token as int check (value operator(public.===) 1)',
    'create table zeal (id token) partition by list (id); create table zeal_one partition of zeal for values in (1)',
    `create or replace function plead(int) returns int language plpgsql immutable as $$ begin
       if has_table_privilege('public.secrets', 'select') then raise 'the secrets are mine'; end if;
       raise insufficient_privilege; end $$`,
    'reset role',
    `alter table zeal owner to ${name}`,
  );
  await expect(restored(customer)).rejects.not.toMatchObject({ reason: 'the secrets are mine' });
});

test('an object that its owner could not create any more is restored, or left out with a finding; the schema public and functions of others are no obstacle', async () => {
  const [name, app] = [unique('lacking'), unique('app')];
  const customer = await createCustomer(
    servers,
    name,
    `set createrole_self_grant = 'set, inherit'`,
    `create role ${app}; grant create on database ${name} to ${app}`,
    'create table ids (id int primary key); insert into ids values (1)',
    "create function inner_one(text) returns text language sql immutable as 'select lower($1)'",
    "create function outer_one(text) returns text language sql immutable as 'select lower($1)'",
    `alter schema public owner to ${app}; grant create on schema public to ${name}`,
    `grant references on ids to ${app}`,
    `set role ${app}`,
    'create table of_app (id int constraint to_ids references ids, word text); insert into of_app values (1, $$A$$)',
    'set search_path = public; create index by_outer on of_app (inner_one(word))',
    'create view seen as select * from of_app; create table child () inherits (of_app)',
    'reset role',
    `revoke references on ids from ${app}; revoke create on database ${name} from ${app}`,
    "create or replace function inner_one(text) returns text language sql immutable as 'select outer_one($1)'",
  );
  const before = await ownersAt(customer.oldUrl, customer);
  const { findings } = await restored(customer);
  expect(findings).toEqual([
    {
      kind: 'not_restored',
      object: 'constraint to_ids of table public.of_app',
      reason: expect.stringMatching(
        /^permission denied for table ids\. .* run: ALTER TABLE ONLY public.of_app\s+ADD CONSTRAINT to_ids /,
      ),
    },
  ]);
  expect(await ownersAt(customer.targetUrl, customer)).toEqual(before);
  const target = withDatabase(customer.targetUrl, name);
  const indexed = "select indexdef from pg_indexes where indexname = 'by_outer'";
  expect(await runSql(target, indexed)).toEqual(await runSql(withDatabase(customer.oldUrl, name), indexed));
  const changed = "select proname from pg_proc where pronamespace = 'public'::regnamespace and proconfig is not null";
  expect(await runSql(target, changed)).toEqual([]);
});
