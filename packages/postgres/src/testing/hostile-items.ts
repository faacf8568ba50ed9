import { literal, oddNames, quote, type Room } from './hostile-room';

type Item = (room: Room) => string[];
const spring = (how: string): string => `public.spring(${literal(how)})`;
const springInt = (how: string, given: string): string => `public.spring_int(${literal(how)}, ${given})`;
const springText = (how: string, given: string): string => `public.spring_text(${literal(how)}, ${given})`;

/** Returns SQL that creates a function which calls the trap, `public.spring`. */
const fn = (name: string, from: string, to: string, how: string, result: string): string =>
  `create function ${name}(${from}) returns ${to} language plpgsql immutable as $trap$ begin perform ${spring(how)}; return ${result}; end $trap$`;

/**
 * Each item returns the statements of one attempt by a hostile customer. Postgres refuses some of these statements. An
 * item inserts a row if its code would run only for rows.
 */
export const items: Record<string, Item> = {
  'cast of a composite type'(room) {
    const [type, tell, table] = [room.name(), room.name(), room.name()];
    const kind = room.random.pick(['as implicit', 'as assignment', '']);
    const to = room.random.pick(['text', 'jsonb', 'bytea', 'varchar', 'xml']);
    return [
      `create type ${type} as (v int)`,
      fn(tell, type, to, 'cast', 'null'),
      `create cast (${type} as ${to}) with function ${tell}(${type}) ${kind}`,
      `create table ${table} (id int primary key, v ${type}, vs ${type}[])`,
      `insert into ${table} values (1, row(1)::${type}, array[row(2)::${type}])`,
    ];
  },
  'cast of a row'(room) {
    const [tell, table] = [room.name(), room.name()];
    const to = room.random.pick(['text', 'json', 'bytea']);
    return [
      `create table ${table} (id int primary key, ${room.column()} text)`,
      `insert into ${table} values (1, 'a')`,
      fn(tell, table, to, 'cast of a row', 'null'),
      `create cast (${table} as ${to}) with function ${tell}(${table}) as implicit`,
    ];
  },
  'check of a table'(room) {
    const table = room.name();
    const kind = room.random.pick(['', 'unlogged']);
    const extra = room.random.pick(['', 'no inherit']);
    return [
      `create ${kind} table ${table} (id int primary key, v text, constraint ${room.bare()} check (${springText('check', 'v')} is not null) ${extra})`,
      `insert into ${table} values (1, 'a')`,
    ];
  },
  'check that is not valid'(room) {
    const table = room.name();
    return [
      `create table ${table} (id int primary key, v int)`,
      `insert into ${table} values (1, 1)`,
      `alter table ${table} add constraint ${room.bare()} check (${springInt('not valid', 'v')} > 5) not valid`,
    ];
  },
  default(room) {
    const table = room.name();
    return [
      `create table ${table} (id int primary key default ${springInt('default', '1')}, v text default ${springText('default', "'a'")})`,
      `insert into ${table} default values`,
    ];
  },
  'generated column'(room) {
    const table = room.name();
    return [
      `create table ${table} (id int primary key, v text, w text generated always as (${springText('generated', 'v')}) stored)`,
      `insert into ${table} values (1, 'a')`,
    ];
  },
  'index expression'(room) {
    const table = room.name();
    const unique = room.random.pick(['', 'unique']);
    return [
      `create table ${table} (id int primary key, v text)`,
      `insert into ${table} values (1, 'a')`,
      `create ${unique} index ${room.bare()} on ${table} (${springText('index', 'v')})`,
      `create index ${room.bare()} on ${table} (v) where ${springText('predicate', 'v')} <> 'b'`,
      `create statistics ${room.name()} on (${springText('statistics', 'v')}), id from ${table}`,
      `cluster ${table} using ${room.bare()}`,
    ];
  },
  'exclusion constraint'(room) {
    const table = room.name();
    return [
      `create table ${table} (id int primary key, v int, exclude using btree ((${springInt('exclusion', 'v')}) with =))`,
      `insert into ${table} values (1, 1)`,
    ];
  },
  rule(room) {
    const table = room.name();
    const event = room.random.pick(['insert', 'update', 'delete']);
    return [
      `create table ${table} (id int primary key, v text)`,
      `insert into ${table} values (1, 'a')`,
      `create rule ${room.bare()} as on ${event} to ${table} do also select ${spring('rule')}`,
      ...(room.random.isChosen(0.5) ? [`alter table ${table} enable always rule ${room.bare()}`] : []),
    ];
  },
  'row security'(room) {
    const table = room.name();
    return [
      `create table ${table} (id int primary key, v text)`,
      `insert into ${table} values (1, 'a'), (2, 'b')`,
      `create policy ${room.bare()} on ${table} using (${spring('policy')}) with check (${spring('policy check')})`,
      `alter table ${table} enable row level security`,
      ...(room.random.isChosen(0.6) ? [`alter table ${table} force row level security`] : []),
    ];
  },
  trigger(room) {
    const [table, trigger] = [room.name(), room.bare()];
    const when = room.random.pick([
      'before insert',
      'after insert or update',
      'after insert or update or delete',
      'before update',
    ]);
    const each = room.random.pick(['row', 'statement']);
    const fires = room.random.pick(['enable always', 'enable replica', 'enable']);
    return [
      `create table ${table} (id int primary key, v text)`,
      `create trigger ${trigger} ${when} on ${table} for each ${each} execute function public.spring_trigger()`,
      `alter table ${table} ${fires} trigger ${trigger}`,
      `insert into ${table} values (1, 'a')`,
    ];
  },
  'constraint trigger'(room) {
    const [table, trigger] = [room.name(), room.bare()];
    return [
      `create table ${table} (id int primary key)`,
      `insert into ${table} values (1)`,
      `create constraint trigger ${trigger} after insert on ${table} deferrable initially deferred for each row execute function public.spring_trigger()`,
      `alter table ${table} enable always trigger ${trigger}`,
    ];
  },
  'event trigger'(room) {
    const hook = room.name();
    return [
      `create function ${hook}() returns event_trigger language plpgsql as $trap$ begin perform ${spring('event trigger')}; end $trap$`,
      `create event trigger ${room.bare()} on ddl_command_end execute function ${hook}()`,
    ];
  },
  domain(room) {
    const [domain, over, table] = [room.name(), room.name(), room.name()];
    const set = room.random.pick(['', 'not null', `default ${springText('domain default', "'a'")}`]);
    return [
      `create domain ${domain} as text ${set} check (${springText('domain', 'value')} is not null)`,
      `create domain ${over} as ${domain}[] check (${spring('domain of an array')})`,
      `create table ${table} (id int primary key, v ${domain}, vs ${over})`,
      `insert into ${table} values (1, 'a', '{a,b}')`,
    ];
  },
  'domain over a composite type'(room) {
    const [type, domain, table] = [room.name(), room.name(), room.name()];
    return [
      `create type ${type} as (${room.column()} int, "v" text)`,
      `create domain ${domain} as ${type} check (${spring('domain of a composite')})`,
      `create table ${table} (id int primary key, v ${domain})`,
      `insert into ${table} values (1, '(1,a)')`,
    ];
  },
  'range with a function of its own'(room) {
    const [diff, range, table] = [room.name(), room.name(), room.name()];
    return [
      fn(diff, 'a int, b int', 'float8', 'subtype_diff', 'a - b'),
      `create type ${range} as range (subtype = int4, subtype_diff = ${diff})`,
      `create table ${table} (id int primary key, v ${range})`,
      `insert into ${table} values (1, '[1,5)')`,
      `create index on ${table} using gist (v)`,
    ];
  },
  'operators of its own'(room) {
    const [compare, table] = [room.name(), room.name()];
    const sign = room.random.pick(['=', '<', '||', '->', '~~']);
    const [left, right] = room.random.pick([
      ['text', 'name'],
      ['int', 'text'],
      ['text', 'text'],
    ] as const);
    return [
      fn(compare, `${left}, ${right}`, 'boolean', 'operator', 'true'),
      `create operator public.${sign} (leftarg = ${left}, rightarg = ${right}, function = ${compare})`,
      `create table ${table} (id int primary key, v text)`,
      `insert into ${table} values (1, 'a')`,
    ];
  },
  'operator class'(room) {
    const [compare, table] = [room.name(), room.name()];
    return [
      fn(compare, 'a int, b int', 'int', 'operator class', 'a - b'),
      `create operator class ${room.name()} for type int using btree as operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 ${compare}(int, int)`,
      `create table ${table} (id int primary key)`,
      `insert into ${table} values (1)`,
    ];
  },
  'functions in the place of those of Postgres'(room) {
    const [made, type] = room.random.pick([
      ['textin(cstring)', 'text'],
      ['record_out(record)', 'text'],
      ['hashtextextended(text, bigint)', 'bigint'],
      ['format(text)', 'text'],
      ['quote_ident(text)', 'text'],
      ['pg_get_userbyid(oid)', 'name'],
      ['setval(regclass, bigint, boolean)', 'bigint'],
      ['pg_export_snapshot()', 'text'],
      ['count(text)', 'bigint'],
      ['to_jsonb(anyelement)', 'jsonb'],
      ['lo_from_bytea(oid, bytea)', 'oid'],
    ] as const);
    const create = (schema: string): string =>
      `create function ${schema}.${made} returns ${type} language plpgsql as $trap$ begin perform ${spring('in the place of a function')}; return null; end $trap$`;
    return [create('public'), create(room.schema), create('pg_catalog')];
  },
  'views and materialised views'(room) {
    const [view, kept] = [room.name(), room.name()];
    const option = room.random.pick(['', 'with (security_invoker = true)', 'with (security_barrier = true)']);
    return [
      `create view ${view} ${option} as select ${spring('view')} as ${room.column()}`,
      `create materialized view ${kept} as select ${springInt('materialised view', '1')} as v`,
      `create unique index on ${kept} (v)`,
      `create materialized view ${room.name()} as select ${spring('empty materialised view')} as v with no data`,
    ];
  },
  'partitions by an expression'(room) {
    const table = room.name();
    return [
      `create table ${table} (id int, v int) partition by range ((${springInt('partition key', 'id')}))`,
      `create table ${room.name()} partition of ${table} for values from (0) to (10)`,
      `create table ${room.name()} partition of ${table} default`,
      `insert into ${table} values (1, 1), (50, 2)`,
      `create trigger ${room.bare()} before insert on ${table} for each row execute function public.spring_trigger()`,
    ];
  },
  'foreign key'(room) {
    const [table, other] = [room.name(), room.name()];
    return [
      `create table ${table} (id int primary key)`,
      `create table ${other} (id int primary key, ref int default ${springInt('default of a foreign key', '1')} references ${table} on delete set default)`,
      `insert into ${table} values (1)`,
      `insert into ${other} values (1, 1)`,
      `create trigger ${room.bare()} after insert on ${table} for each row execute function public.spring_trigger()`,
    ];
  },
  publication(room) {
    const table = room.name();
    return [
      `create table ${table} (id int primary key, v text)`,
      `insert into ${table} values (1, 'a')`,
      `create publication ${room.bare()} for table ${table} (id) where (id > 0)`,
      `create publication ${room.bare()} for table ${table} where (${springInt('row filter', 'id')} > 0)`,
      `create publication ${room.bare()} for tables in schema ${room.schema}`,
      `alter table ${table} replica identity ${room.random.pick(['full', 'nothing', 'default'])}`,
    ];
  },
  'comments and labels'(room) {
    const [table, column, type] = [room.name(), room.column(), room.name()];
    return [
      `create table ${table} (id int primary key, ${column} text)`,
      `create type ${type} as enum ('a', 'b''; \\! touch x')`,
      room.comment('table', table),
      room.comment('column', `${table}.${column}`),
      room.comment('type', type),
      room.comment('schema', room.schema),
      `security label on table ${table} is 'x'`,
      `security label on schema ${room.schema} is 'x'`,
    ];
  },
  'large object'(room) {
    const number = 100_000 + room.random.below(2 ** 30);
    return [
      `select pg_catalog.lo_from_bytea(${number}, 'a')`,
      room.comment('large object', String(number)),
      `grant select on large object ${number} to public`,
    ];
  },
  privileges(room) {
    const [table, call] = [room.name(), room.name()];
    return [
      `create table ${table} (id int primary key, v text)`,
      `grant all on ${table} to public`,
      `grant select (v) on ${table} to public`,
      `create function ${call}() returns boolean language sql security definer set search_path = '"a; b"', public as $trap$ select public.spring('security definer') $trap$`,
      `create function ${room.name()}() returns boolean language sql set role = 'postgres' as $trap$ select public.spring('set role') $trap$`,
      `create function ${room.name()}() returns boolean language sql set session_authorization = 'postgres' as $trap$ select public.spring('set session') $trap$`,
      `alter default privileges in schema ${room.schema} grant all on tables to public`,
      `alter default privileges grant execute on functions to public`,
      `grant all on schema ${room.schema} to public`,
    ];
  },
  'aggregate and procedure'(room) {
    const [step, sum] = [room.name(), room.name()];
    return [
      fn(step, 'a int, b int', 'int', 'aggregate', 'a + b'),
      `create aggregate ${sum}(int) (sfunc = ${step}, stype = int, initcond = '0')`,
      `create materialized view ${room.name()} as select ${sum}(n) as v from pg_catalog.generate_series(1, 3) n`,
      `create procedure ${room.name()}() language plpgsql as $trap$ begin perform ${spring('procedure')}; end $trap$`,
    ];
  },
  sequence(room) {
    const [sequence, table] = [room.name(), room.name()];
    return [
      `create sequence ${sequence} increment -7`,
      `select pg_catalog.nextval(${literal(sequence)})`,
      `create table ${table} (id int generated always as identity primary key, ${room.column()} int default ${springInt('default', '3')})`,
      `insert into ${table} default values`,
    ];
  },
  'no key and odd columns'(room) {
    const [a, b] = room.random.pickSome(oddNames, 2).map(quote);
    const table = room.name();
    return [
      `create table ${table} (${a} text, ${b} text, check (${springText('check', String(a))} is not null))`,
      `insert into ${table} values ('a', 'b'), ('a', 'b'), ('c', null)`,
      `create table ${room.name()} ()`,
    ];
  },
  inheritance(room) {
    const [parent, child] = [room.name(), room.name()];
    return [
      `create table ${parent} (id int, v text check (${springText('inherited check', 'v')} is not null))`,
      `create table ${child} (w int default ${springInt('default', '1')}) inherits (${parent})`,
      `insert into ${child} (id, v) values (1, 'a')`,
    ];
  },
  'foreign table'(room) {
    const server = room.bare();
    return [
      `create server ${server} foreign data wrapper postgres_fdw options (dbname 'canary', host '127.0.0.1')`,
      `create user mapping for public server ${server} options (user 'postgres', password_required 'false')`,
      `create foreign table ${room.name()} (secret text) server ${server} options (schema_name 'public', table_name 'secret')`,
    ];
  },
  'what our own work once trusted by its name'(room) {
    const marker = room.random.pick(['drydock_upgrade', 'drydock', 'drydock_guard']);
    return [
      `create schema ${marker}`,
      `create table ${marker}.marker (id text primary key, v text default ${springText('marker', "'a'")})`,
      `create trigger x before insert on ${marker}.marker for each row execute function public.spring_trigger()`,
      `create publication ${marker} for table ${marker}.marker`,
    ];
  },
};
