/**
 * Owners who have revoked their own rights are upgraded, and have no more rights afterwards.
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
import { runSql } from '../testing/run-sql';
import { catchUp } from './bring-level';
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

/**
 * Returns everybody's rights on tables and sequences. MAINTAIN is left out, because version 17 introduced it and nobody
 * could give it up before.
 */
const rightsOf = (url: string): Promise<unknown[]> =>
  runSql(
    url,
    `select c.relname as name, array(select a::text from unnest(c.relacl) a where a::text !~ '=m/' order by 1) as rights from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'S') order by 1`,
  );

test.each(['logical', 'offline'] as const)(
  'an owner without rights on its own tables is upgraded (%s), and has no rights afterwards',
  async (path) => {
    const name = `modest_${path}`;
    const made: Customer = await createCustomer(
      servers,
      name,
      'create table customers (id serial primary key, name text)',
      'create table orders (id int primary key, customer int references customers, unique (id, customer))',
      'create unlogged table visits (customer int references customers)',
      "insert into customers (name) values ('a'), ('b')",
      'insert into orders values (1, 1), (2, 2)',
      `revoke all on customers, orders, visits, customers_id_seq from ${name}`,
      `grant select (name) on customers to ${name}; grant select on orders to public`,
    );
    const move = { ...made, path };
    const before = await rightsOf(move.ownUrl);
    expect(await trySchema({ ...move, secret: randomBytes(32).toString('hex'), fence: '0' })).toEqual([]);
    await copySchema(move);
    await copyData(move);
    if (path === 'logical') await catchUp(move);
    await cutOver(move);
    expect(await rightsOf(move.ownTargetUrl)).toEqual(before);
    expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'equal', tables: 3 });
    await expect(runSql(move.ownTargetUrl, 'insert into orders values (3, 1)')).rejects.toThrow(
      'permission denied for table orders',
    );
    expect(await runSql(move.ownTargetUrl, "select count(*)::int as n from pg_constraint where contype = 'f'")).toEqual(
      [{ n: 2 }],
    );
    await endMove(move);
  },
);

/**
 * Returns statements in which `app` creates objects that refer to objects of `name`, and then loses the rights that it
 * needed for them. `name` owns a partition of a table of `app`.
 */
const lostRights = (name: string, app: string): string[] => [
  `create role ${app}; grant create on schema public to ${app}; grant ${app} to ${name} with set true, inherit true`,
  'create table ids (id int primary key); insert into ids values (1)',
  "create schema shelf; create type shelf.mood as enum ('good')",
  `grant usage, create on schema shelf to ${app}; grant references on ids to ${app}`,
  `set role ${app}`,
  'create table shelf.notes (id int primary key, word text, mood shelf.mood, id_of int constraint to_ids references public.ids)',
  "insert into shelf.notes values (1, 'a', 'good', 1); create index by_word on shelf.notes (lower(word))",
  'create table parts (id int) partition by list (id)',
  'reset role',
  'create table part partition of parts for values in (1); insert into parts values (1)',
  `revoke usage, create on schema shelf from ${app}; revoke create on schema public from ${app}; revoke references on ids from ${app}`,
  `revoke usage on type shelf.mood from public`,
];

test.each(['logical', 'offline'] as const)(
  'objects that their owners could not create any more are upgraded (%s), and the owners have no more rights afterwards',
  async (path) => {
    const [name, app] = [`lost_${path}`, `lost_app_${path}`];
    const move = { ...(await createCustomer(servers, name, ...lostRights(name, app))), path };
    const rightsAt = (url: string): Promise<unknown[]> =>
      runSql(
        url,
        `select n.nspname, has_schema_privilege('${app}', n.oid, 'usage') as usage, has_schema_privilege('${app}', n.oid, 'create') as make,
        has_table_privilege('${app}', 'ids', 'references') as refer, pg_has_role('${app}', '${name}', 'member') as member,
        array(select c.conname || c.convalidated from pg_constraint c where c.connamespace = n.oid and contype in ('f', 'p') order by 1) as keys,
        array(select i.indexname from pg_indexes i where i.schemaname = n.nspname order by 1) as indexes,
        array(select i.inhrelid::regclass::text from pg_inherits i order by 1) as parts
        from pg_namespace n where n.nspname in ('public', 'shelf') order by 1`,
      );
    const before = await rightsAt(withDatabase(move.oldUrl, name));
    expect(await trySchema({ ...move, secret: randomBytes(32).toString('hex'), fence: '0' })).toEqual([]);
    await copySchema(move);
    await copyData(move);
    if (path === 'logical') await catchUp(move);
    await cutOver(move);
    expect(await rightsAt(withDatabase(move.targetUrl, name))).toEqual(before);
    expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'equal' });
    await endMove(move);
  },
);

const denying = `create or replace function plead(int) returns int language plpgsql immutable as $$ begin
  if has_table_privilege('public.secrets', 'select') then raise 'the secrets are mine'; end if;
  raise insufficient_privilege; end $$`;
/** Objects for which Postgres calls a function when the upgrade creates them. */
const pleas = {
  'a generated column': ['create table zeal (id int, double int generated always as (plead(1) + id) stored)'],
  'a partition key': ['create table zeal (id int) partition by range ((plead(1) + id))'],
  'an exclusion': [
    'create table zeal (id int)',
    'insert into zeal values (1)',
    'alter table zeal add exclude (plead(id) with =)',
  ],
  'the predicate of an exclusion': [
    'create table zeal (id int)',
    'alter table zeal add exclude (id with =) where (plead(1) = 1)',
  ],
};
/**
 * Objects whose CHECK uses an operator. Such a CHECK is dropped while the schema is created, and added later without a
 * check of the rows.
 */
const unheard = {
  'a partition bound': [
    'create domain token as int check (value === 1)',
    'create table zeal (id token) partition by list (id); create table zeal_one partition of zeal for values in (1)',
  ],
  'a check of a partition': [
    'create table zeal (id int) partition by list (id)',
    'create table zeal_one partition of zeal (check (id > (1 === 1)::int)) for values in (2)',
  ],
};

const makePleader = (statements: readonly string[]): Promise<Customer> => {
  const name = `pleading_${randomBytes(4).toString('hex')}`;
  const app = `${name}_app`;
  return createCustomer(
    servers,
    name,
    `create role ${app}; grant create on schema public to ${app}; grant ${app} to ${name} with set true, inherit false`,
    `create role ${name}_other; grant create on schema public to ${name}_other; grant ${name}_other to ${name} with set true, inherit false`,
    `set role ${name}_other; create table secrets (word text); insert into secrets values ('hidden'); reset role`,
    `set role ${app}`,
    'create function plead(int) returns int language plpgsql immutable as $$ begin return $1; end $$',
    "create function same(int, int) returns boolean language sql immutable as 'select public.plead($1) = $2'",
    'create operator === (function = same, leftarg = int, rightarg = int)',
    ...statements,
    denying,
    'reset role',
  );
};

test.each(Object.entries(pleas))('code of %s that raises a denial itself is lent no rights', async (_, statements) => {
  const move = await makePleader(statements);
  const outcome: unknown = await copySchema(move)
    .then(() => copyData(move))
    .catch((error: unknown) => error);
  await endMove(move);
  expect(outcome).toMatchObject({ code: 'statement_failed', reason: 'insufficient_privilege', isPermanent: true });
});

test.each(Object.entries(unheard))(
  'code of %s that would raise a denial itself is not called',
  async (_, statements) => {
    const move = await makePleader(statements);
    for (const stage of [copySchema, copyData, catchUp, cutOver]) await stage(move);
    const checks =
      "select conname, convalidated, pg_get_constraintdef(oid) from pg_constraint where contype = 'c' and connamespace = 'public'::regnamespace";
    const before = await runSql(withDatabase(move.oldUrl, move.databaseName), checks);
    expect(before).toHaveLength(1);
    expect(await runSql(withDatabase(move.targetUrl, move.databaseName), checks)).toEqual(before);
    await endMove(move);
  },
);
