/** A schema with many things that a careless dump loses. `rows` is the number of customers. */
export const demandingSchema = (rows: number): string => `
create extension pg_trgm; create extension hstore; create extension "uuid-ossp";
create schema "odd ""schema";
create type public.mood as enum ('new', 'it''s; paid', '\\!'); create domain public.email as text check (value ~ '@');
create type public.point3 as (x int, y int, kind public.mood); create type public.span as range (subtype = numeric);
create table customers (id bigserial primary key, email public.email not null unique, name text not null,
  created_at timestamptz not null default now(), balance numeric(12,2) not null default 0, note text, twice numeric generated always as (balance * 2) stored);
create table orders (id bigint generated always as identity primary key, customer_id bigint not null references customers (id) on delete cascade,
  status public.mood not null default 'new', moods public.mood[], place public.point3, places public.point3[], during public.span, attributes hstore,
  cls regclass, total numeric(12,2) not null check (total >= 0));
create table docs (id uuid primary key default gen_random_uuid(), body bytea not null, tags text[] not null default '{}', matrix int[][], at interval, f float8, j jsonb, x xml);
create table metrics (ts timestamptz not null, site int not null, v double precision, primary key (site, ts)) partition by range (ts);
create table metrics_q3 partition of metrics for values from ('2026-07-01') to ('2026-10-01');
create table metrics_rest partition of metrics default;
create table parent (a int); create table child (b text) inherits (parent); create unlogged table scratch (a int); create table nothing ();
create table "odd ""schema"."Odd; Table" ("col ""1" int, "select" text, dropped int, "späte" text);
alter table "odd ""schema"."Odd; Table" drop column dropped;
create sequence invoice_no start 5000 increment 7 cycle maxvalue 99999; select nextval('invoice_no') from generate_series(1, 100);
create sequence untouched start 42;
create view v_revenue as select c.id, c.name, sum(o.total) revenue from customers c join orders o on o.customer_id = c.id group by 1, 2;
create function half(v numeric) returns numeric language sql immutable begin atomic select case when v > 0 then v / 2 else 0 end; end;
create function body_with_backslash() returns text language plpgsql as $body$
begin
  return E'a;b' || '
\\! touch /tmp/no; ';
end $body$;
create procedure noop() language sql as 'select 1;';
create function touch() returns trigger language plpgsql as $$ begin insert into public.docs (body) values ('\\x00'); return new; end $$;
create trigger t_touch after update on customers for each row execute function touch();
create rule r_scratch as on delete to scratch do instead (select 1; select 2);
create aggregate total_of (numeric) (sfunc = numeric_add, stype = numeric, initcond = '0');
alter table docs enable row level security; create policy p_docs on docs for select using (true);
comment on table customers is E'shop; customers\\n\\\\! echo';
insert into customers (email, name, note, balance) select 'u' || i || '@ex.com', 'Customer ' || md5(i::text), E'tab\\t back\\\\slash', i / 7.0 from generate_series(1, ${rows}) i;
insert into orders (customer_id, status, moods, place, places, during, attributes, cls, total)
  select i, 'it''s; paid', array['new', '\\!']::public.mood[], row (i, null, 'new'::public.mood)::public.point3, array[row (1, 2, 'new'::public.mood)::public.point3], '[1.5,2)', 'a=>1,b=>NULL', 'customers', i
  from generate_series(1, least(${rows}, 2000)) i;
insert into docs (body, tags, matrix, at, f, j, x) values ('\\xdeadbeef00', '{a,"b,c",NULL}', '{{1,2},{3,4}}', '1 mon -3 days 00:00:01.5', 0.1::float8 + 0.2, '{"ä": [1, null]}', '<a>&amp;</a>'),
  ('', '{}', null, null, 'NaN', null, null), ('', '{}', null, null, '-Infinity', null, null);
insert into metrics select '2026-07-01'::timestamptz + (i || ' hours')::interval, i % 5, i * 0.1 from generate_series(1, 3000) i;
insert into parent values (1), (1); insert into child values (2, 'x'); insert into scratch values (3); insert into nothing default values;
insert into "odd ""schema"."Odd; Table" values (1, 'x', 'ß'), (null, '', '\\N');
create materialized view mv_status as select status, count(*) n from orders group by 1; create unique index on mv_status (status);
create materialized view mv_empty as select 1 as one with no data;
create index orders_cust on orders (customer_id) include (total); create index orders_open on orders (id) where status = 'new';
create index cust_trgm on customers using gin (name gin_trgm_ops); create index cust_lower on customers (lower(email));
create statistics st (dependencies) on customer_id, total from orders;
select lo_from_bytea(4711, decode(repeat('ab', 700000), 'hex')), lo_from_bytea(4712, ''), lo_from_bytea(4713, decode(repeat('cd', 262144), 'hex'));
`;
