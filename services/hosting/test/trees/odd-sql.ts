/*
 * Unusual SQL that a customer or an attacker may run with the role of a site. A statement that the server does not know
 * or allow is skipped.
 */

const columns = Array.from({ length: 1_500 }, (_, at) => `c${at} int`).join(', ');

export const oddSql: readonly string[] = [
  'create table hidden (id int); alter table hidden enable row level security; alter table hidden force row level security; insert into hidden values (1)',
  `create table policed (id int); alter table policed enable row level security, force row level security;
   create policy nobody on policed using (1 / (id - id) = 1)`,
  'create schema closed; create table closed.t (id int); revoke all on schema closed from current_user; revoke all on closed.t from current_user',
  'revoke all on schema public from public',
  `create table other (id int); insert into other values (1);
   create function has_other() returns boolean language sql as 'select exists (select from public.other)';
   create table checked (id int check (has_other())); insert into checked values (1)`,
  `create function fails() returns int immutable language plpgsql as 'begin return 1 / 0; end'; create view failing as select fails()`,
  `create function later() returns int immutable language plpgsql as 'begin return 1; end'; create materialized view kept as select later();
   create or replace function later() returns int immutable language plpgsql as 'begin raise exception ''no more''; end'`,
  `create function of_public(int) returns int immutable language sql as 'select $1'; create function of_index(int) returns int immutable language sql as 'select of_public($1)';
   create table indexed (id int); create index on indexed (of_index(id)); insert into indexed values (1)`,
  `create domain small as int check (value < 10); create table smalls (id small); insert into smalls values (9); alter domain small add check (value < 5) not valid`,
  'create table "two\nlines" ("col\n" int, "" "char")',
  `create table "-- drop" ("$$" text, "''" text); insert into "-- drop" values (E'\\\\.', E'\\\\N')`,
  `create table wide (${columns})`,
  `select lo_from_bytea(0, decode(repeat('00ff', 5000), 'hex')) from generate_series(1, 20)`,
  `create table shouts (id int); create function shout() returns trigger language plpgsql as 'begin raise exception ''no''; end';
   insert into shouts values (1); create trigger shout before insert on shouts for each row execute function shout(); alter table shouts enable always trigger shout`,
  'create table swallowed (id int); insert into swallowed values (1); create rule swallow as on insert to swallowed do instead nothing',
  'create table a (id int primary key); create table b (id int primary key references a deferrable initially deferred); alter table a add foreign key (id) references b deferrable',
  'create table loops (id int primary key, parent int references loops); insert into loops values (1, 1)',
  'create table unchecked (id int references a_missing)',
  'create table late (id int); insert into late values (-1); alter table late add check (id > 0) not valid',
  "create table times (t timestamptz, d date, i interval); insert into times values ('infinity', '4713-01-01 BC', '-178000000 years'), ('-infinity', '5874897-12-31', 'P1Y')",
  "create table numbers (n numeric, f float8, r real); insert into numbers values ('NaN', '-Infinity', '1e-45'), (1e1000, '5e-324', 'NaN')",
  `create table bytes (b bytea, t text); insert into bytes select decode(repeat('00', 100000), 'hex'), repeat(chr(1), 100000) from generate_series(1, 20)`,
  "create table documents (j jsonb, x xml, v tsvector, r int4range, a int[]); insert into documents values ('{\"a\":[null]}', '<a/>', 'a:1', '(,)', '{{1,null},{2,3}}')",
  `create table gone (id int); create table points_to (r regclass, f regproc); insert into points_to values ('gone', 'now'); drop table gone`,
  `create sequence spent minvalue -5 maxvalue 3 cycle; select nextval('spent') from generate_series(1, 7)`,
  `create sequence ended as smallint maxvalue 3; select nextval('ended') from generate_series(1, 3)`,
  'create table always (id int generated always as identity, twice int generated always as (1 + 1) stored); insert into always default values',
  'create table parts (id int) partition by range (id); create table part partition of parts for values from (0) to (10); create table rest partition of parts default; insert into parts values (1), (100)',
  `create table parent (id int); create table child (more text) inherits (parent); insert into child values (1, 'x'); alter table child alter id set not null`,
  'create unlogged table fleeting (id int); insert into fleeting values (1)',
  'create table emptied (); insert into emptied default values',
  `create table dropped (a int, b text, c int); insert into dropped values (1, 'b', 2); alter table dropped drop b, add d int default 5`,
  `create type mood as enum ('sad', ''); create table moods (m mood, c mood[]); insert into moods values ('', '{sad,""}')`,
  `create type pair as (a int, b text); create table pairs (p pair, q pair[]); insert into pairs values ((1, E'"\\\\'), array[(1, null)::pair])`,
  'create operator === (leftarg = int, rightarg = int, function = int4eq); create aggregate my_sum(int) (sfunc = int4pl, stype = int)',
  "create collation by_length (provider = icu, locale = 'en-u-kn-true'); create table sorted (t text collate by_length); create index on sorted (t)",
  `create extension citext; create table insensitive (t citext unique); insert into insensitive values ('A')`,
  `create extension hstore; create extension unaccent; create table stores (h hstore); insert into stores values ('a=>1')`,
  'create publication news for table version',
  `do $$ begin execute format('alter database %I set search_path = nowhere', current_database()); end $$`,
  `do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`,
  `do $$ begin execute format('alter database %I set statement_timeout = 1', current_database()); end $$`,
  `do $$ begin execute format('alter database %I set row_security = off', current_database()); end $$`,
  `do $$ begin execute format('alter role current_user in database %I set bytea_output = escape', current_database()); end $$`,
  `do $$ begin execute format('alter database %I set datestyle = "SQL, DMY"', current_database()); end $$`,
  `do $$ begin execute format('alter database %I set client_encoding = latin1', current_database()); end $$`,
  `do $$ begin execute format('comment on database %I is %L', current_database(), E'two\nlines'); end $$`,
  'alter default privileges revoke all on tables from current_user',
  'create view looped as select 1 as x; create or replace view looped as select x from (select 1 as x) s; create recursive view counted (n) as values (1) union all select n + 1 from counted where n < 3',
  'create statistics related (dependencies) on c0, c1 from wide',
  `create table excluded (r int4range, exclude using gist (r with &&)); insert into excluded values ('[1,2)')`,
  "create procedure never() language plpgsql as 'begin loop perform pg_sleep(1); end loop; end'",
  'create function hidden_body() returns int begin atomic select count(*)::int from pg_class; end',
  'drop table version',
  'drop schema public cascade',
  'alter table version rename to "Version"',
  'create temp table session_only (id int)',
  'create table many_rows as select n, md5(n::text) from generate_series(1, 20000) n',
];
