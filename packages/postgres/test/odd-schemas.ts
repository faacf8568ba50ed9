import { SeededRandom } from '@drydock/testing/seeded-random';
import { literal, oddNames, oddTexts, quote } from './odd-names';

/**
 * Schemas of a customer with odd habits and no bad intentions. They have most kinds of objects that an owner can make,
 * with many options, under names with all kinds of characters.
 */

/** The names and choices that the statements of one case share. */
class Draft {
  readonly random: SeededRandom;
  readonly statements: string[] = [];
  readonly schema: string;
  private readonly roles: readonly string[];
  private readonly tag: string;
  private made = 0;

  constructor(random: SeededRandom, tag: string, roles: readonly string[]) {
    this.random = random;
    this.tag = tag;
    this.roles = roles;
    this.schema = this.name();
  }

  /** Returns a new quoted name. */
  name(): string {
    const odd = this.random.pick(oddNames);
    return quote(
      this.random.isChosen(0.5)
        ? `${odd.slice(0, 50)}${this.tag}${this.made++}`
        : `${this.tag}${this.made++}${odd.slice(0, 50)}`,
    );
  }

  /** Returns a new name with its schema. */
  qualified = (): string => `${this.schema}.${this.name()}`;

  text = (): string => literal(this.random.pick(oddTexts));
  role = (): string => quote(this.random.pick(this.roles));
  may = (probability: number, text: string): string => (this.random.isChosen(probability) ? text : '');
  pick = <T>(from: readonly T[]): T => this.random.pick(from);

  add(...statements: string[]): void {
    this.statements.push(...statements);
  }

  comment(kind: string): void {
    if (this.random.isChosen(0.4)) this.add(`comment on ${kind} is ${this.text()}`);
  }

  grant(privileges: readonly string[], object: string): void {
    if (this.random.isChosen(0.4))
      this.add(`grant ${this.pick(privileges)} on ${object} to ${this.role()}${this.may(0.3, ' with grant option')}`);
    if (this.random.isChosen(0.2)) this.add(`grant ${this.pick(privileges)} on ${object} to public`);
    if (this.random.isChosen(0.1)) this.add(`revoke all on ${object} from ${this.pick(['public', 'current_user'])}`);
  }
}

function enumType(draft: Draft): void {
  const type = draft.qualified();
  const [first, second] = [draft.name(), draft.name()].map((name) => literal(name.slice(1, 40)));
  const table = draft.qualified();
  draft.add(
    `create type ${type} as enum (${first}, ${second}, '')`,
    `alter type ${type} add value 'between' before ${second}`,
  );
  draft.add(
    `create table ${table} (one ${type} default ${first}, many ${type}[] default array[${second}]::${type}[] check (${first} = any (many) or true))`,
  );
  draft.add(`insert into ${table} default values`, `create index on ${table} (one) where one > ${first}`);
  draft.comment(`type ${type}`);
  draft.grant(['usage'], `type ${type}`);
}

function domainType(draft: Draft): void {
  const [domain, other, table] = [draft.qualified(), draft.qualified(), draft.qualified()];
  const check = draft.name();
  draft.add(
    `create domain ${domain} as text collate "C" default ${draft.text()} constraint ${check} check (length(value) < 500 and value is distinct from 'never')${draft.may(0.3, ' not null')}`,
    `create domain ${other} as ${domain}[] check (cardinality(value) < 10)`,
    `alter domain ${domain} add constraint ${draft.name()} check (value <> 'x') not valid`,
    `create table ${table} (a ${domain}, b ${other}, c ${domain} default 'own')`,
    `insert into ${table} (b) values (array['q', ${draft.text()}]::${other})`,
  );
  draft.comment(`domain ${domain}`);
  draft.comment(`constraint ${check} on domain ${domain}`);
  draft.grant(['usage'], `domain ${domain}`);
}

function compositeType(draft: Draft): void {
  const [type, range, typed, table] = [draft.qualified(), draft.qualified(), draft.qualified(), draft.qualified()];
  const [field, key] = [draft.name(), draft.name()];
  draft.add(
    `create type ${type} as (${key} int, ${field} text collate "C", gone int)`,
    `alter type ${type} drop attribute gone`,
    `create type ${range} as range (subtype = float8, subtype_diff = float8mi${draft.may(0.5, `, multirange_type_name = ${draft.qualified()}`)})`,
    `create table ${typed} of ${type} (${field} with options default ${draft.text()}, primary key (${key}))`,
    `create table ${table} (whole ${type}, list ${type}[], during ${range}, exclude using gist (during with &&))`,
    `insert into ${typed} (${key}) values (1)`,
    `insert into ${table} values (row (1, ${draft.text()})::${type}, array[row (2, null)::${type}], '[1.5,2.5)')`,
    `create index on ${table} (((whole).${field}))`,
  );
  draft.comment(`column ${type}.${field}`);
  draft.comment(`type ${range}`);
}

function table(draft: Draft): void {
  const [target, other, sequence] = [draft.qualified(), draft.qualified(), draft.qualified()];
  const [id, text, number, span, made] = [draft.name(), draft.name(), draft.name(), draft.name(), draft.name()];
  const deferrable = draft.pick(['', ' deferrable', ' deferrable initially deferred']);
  const unlogged = draft.may(0.2, 'unlogged ');
  const identity = draft.pick(['always', 'by default']);
  const key = draft.name();
  draft.add(
    `create sequence ${sequence} as ${draft.pick(['smallint', 'int', 'bigint'])} increment ${draft.pick([1, -3, 7])} ${draft.may(0.5, 'minvalue -200')} ${draft.may(0.5, 'maxvalue 30000')} cache 3 ${draft.may(0.5, 'cycle')}`,
    `create ${unlogged}table ${target} (${id} int generated ${identity} as identity (start 10 increment 5${draft.may(0.3, ' cycle')}),
      ${text} text collate ${draft.pick(['"C"', '"default"', 'ucs_basic'])} default ${draft.text()} constraint ${draft.name()} not null, gone int,
      ${number} numeric(10, 3) default nextval(${literal(sequence)}::regclass) check (${number} is not null) no inherit,
      ${span} int4range default '[1,5)', ${made} text generated always as (upper(${text})) stored, times timestamptz[] default '{}',
      constraint ${key} primary key (${id})${draft.may(0.3, ` include (${text})`)},
      constraint ${draft.name()} unique ${draft.may(0.4, 'nulls not distinct ')}(${number}, ${text})${deferrable},
      constraint ${draft.name()} exclude using gist (${span} with &&) where (${id} > 100)) with (fillfactor = ${draft.pick([50, 70, 100])}${draft.may(0.3, ', autovacuum_enabled = false, toast.autovacuum_enabled = false')})`,
    `alter table ${target} drop column gone`,
    `alter sequence ${sequence} owned by ${target}.${number}`,
    `alter table ${target} alter ${text} set storage ${draft.pick(['external', 'main'])}, alter ${text} set statistics 77, alter ${text} set (n_distinct = -0.5), alter ${text} set compression pglz`,
    `insert into ${target} (${span}) select int4range(n * 10, n * 10 + 1) from generate_series(1, 20) n`,
    `create ${unlogged}table ${other} (parent int constraint ${draft.name()} references ${target} on delete ${draft.pick(['cascade', 'set null', 'restrict'])} on update ${draft.pick(['no action', 'set default'])}, self int, filler text default ${draft.text()},
      constraint ${draft.name()} check (self <> 0) not valid, primary key (self))`,
    `alter table ${other} add constraint ${draft.name()} foreign key (self) references ${other} (self) deferrable initially deferred not valid`,
    `insert into ${other} (self) values (5), (6)`,
    `create ${draft.may(0.5, 'unique ')}index ${draft.name()} on ${target} (${id} desc nulls last, lower(${text}) collate "C" text_pattern_ops) ${draft.may(0.4, `include (${number})`)} where ${id} > 3`,
    `create index ${draft.name()} on ${target} using ${draft.pick(['hash', 'spgist', 'brin'])} (${text})`,
    `create index ${draft.name()} on ${target} using gin (times) with (fastupdate = off)`,
    `create index on ${target} ((${id} * 2), (${text} || ${draft.text()}))`,
    `create statistics ${draft.qualified()} ${draft.pick(['', '(ndistinct)', '(dependencies, mcv)'])} on ${id}, ${text}, ${number} from ${target}`,
    `create statistics ${draft.qualified()} on (lower(${text})), (${id} + 1) from ${target}`,
    `alter table ${target} ${draft.pick([`cluster on ${key}`, 'replica identity full', `replica identity using index ${key}`, 'replica identity nothing'])}`,
  );
  draft.comment(`table ${target}`);
  draft.comment(`column ${target}.${text}`);
  draft.comment(`constraint ${key} on ${target}`);
  draft.comment(`sequence ${sequence}`);
  draft.grant(
    [
      'select',
      'insert, update',
      'all',
      'references',
      `select (${id}, ${text})`,
      `update (${text})`,
      'trigger, truncate',
    ],
    target,
  );
  draft.grant(['usage', 'select, update', 'all'], `sequence ${sequence}`);
  triggersOn(draft, target, text);
  policiesOn(draft, target, text);
  viewsOf(draft, target, [id, text, number]);
  if (unlogged === '' && draft.random.isChosen(0.3))
    draft.add(
      `create publication ${draft.name()} for table ${target} (${id}, ${text}) where (${id} > 5), ${other} with (publish = 'insert')`,
    );
}

function triggersOn(draft: Draft, target: string, column: string): void {
  const [routine, trigger] = [draft.qualified(), draft.name()];
  draft.add(
    `create function ${routine}() returns trigger language plpgsql as ${literal(`begin /* ${draft.pick(oddTexts).replaceAll('*', '')} */ return new; end`)}`,
    `create trigger ${trigger} before insert or update of ${column} on ${target} for each row when (new.${column} is distinct from ${draft.text()}) execute function ${routine}(${draft.text()}, 'b')`,
    `create constraint trigger ${draft.name()} after update on ${target} deferrable initially deferred for each row execute function ${routine}()`,
    `create trigger ${draft.name()} after delete on ${target} referencing old table as ${draft.name()} for each statement execute function ${routine}()`,
    `alter table ${target} ${draft.pick(['disable', 'enable replica', 'enable always', 'enable'])} trigger ${trigger}`,
  );
  draft.comment(`trigger ${trigger} on ${target}`);
}

function policiesOn(draft: Draft, target: string, column: string): void {
  const policy = draft.name();
  draft.add(
    `create policy ${policy} on ${target} as ${draft.pick(['permissive', 'restrictive'])} for ${draft.pick(['select', 'delete', 'all'])} to ${draft.role()}, ${draft.role()} using (${column} <> ${draft.text()})`,
    `create policy ${draft.name()} on ${target} for insert to public with check (current_user <> ${draft.text()})`,
  );
  if (draft.random.isChosen(0.6)) draft.add(`alter table ${target} enable row level security`);
  if (draft.random.isChosen(0.2)) draft.add(`alter table ${target} force row level security`);
  draft.comment(`policy ${policy} on ${target}`);
}

function viewsOf(draft: Draft, target: string, [id, text, number]: [string, string, string]): void {
  const [view, over, stored, rule] = [draft.qualified(), draft.qualified(), draft.qualified(), draft.name()];
  draft.add(
    `create view ${view} with (security_barrier = ${draft.pick(['true', 'false'])}${draft.may(0.4, ', security_invoker = true')}) as select ${id}, ${text} as ${quote('Alias "x"')}, ${number} from ${target} where ${text} <> ${draft.text()} ${draft.pick(['', 'with local check option', 'with cascaded check option'])}`,
    `create view ${over} as with recursive r (n) as (select 1 union all select n + 1 from r where n < 5) select r.n, v.*, row_number() over (partition by r.n order by v.${id}) as place, ${draft.text()}::text as said
      from r left join lateral (select * from ${view} limit 3) v on true`,
    `create materialized view ${stored} as select ${id}, count(*) filter (where ${number} > 1) as many from ${target} group by ${id} having count(*) > 0 with ${draft.pick(['no ', ''])}data`,
    `create unique index on ${stored} (${id})`,
    `create rule ${rule} as on update to ${view} where old.${id} = 1 do also select ${draft.text()}::text`,
    `create rule ${draft.name()} as on delete to ${over} do instead nothing`,
    `alter view ${view} alter ${quote('Alias "x"')} set default ${draft.text()}`,
  );
  draft.comment(`view ${view}`);
  draft.comment(`materialized view ${stored}`);
  draft.comment(`column ${over}.place`);
  draft.comment(`rule ${rule} on ${view}`);
  draft.grant(['select', 'all', `select (${id})`], view);
  draft.grant(['select'], stored);
}

function partitions(draft: Draft): void {
  const [parent, low, high, rest, attached, leaf] = Array.from({ length: 6 }, () => draft.qualified()) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const [key, text] = [draft.name(), draft.name()];
  const way = draft.pick(['range', 'list', 'hash'] as const);
  const bounds = {
    range: ['from (minvalue) to (10)', 'from (10) to (20)', 'from (20) to (maxvalue)'],
    list: ['in (1, 2)', 'in (3)', 'in (4, null)'],
    hash: ['with (modulus 3, remainder 0)', 'with (modulus 3, remainder 1)', 'with (modulus 3, remainder 2)'],
  }[way] as [string, string, string];
  const values = (bound: string): string => (way === 'list' ? `for values ${bound}` : `for values ${bound}`);
  draft.add(
    `create table ${parent} (${key} int, ${text} text default ${draft.text()}, at date default '2026-01-01') partition by ${way} (${key})`,
    `create table ${low} partition of ${parent} (${text} default 'low', constraint ${draft.name()} check (${text} <> 'bad')) ${values(bounds[0])}`,
    `create table ${high} partition of ${parent} ${values(bounds[1])} partition by range (at)`,
    `create table ${leaf} partition of ${high} default with (fillfactor = 80)`,
    `create table ${attached} (at date, extra int, ${text} text, ${key} int)`,
    `alter table ${attached} drop column extra`,
    `alter table ${parent} attach partition ${attached} ${values(bounds[2])}`,
    ...(way === 'list' ? [`create table ${rest} partition of ${parent} default`] : []),
    `insert into ${parent} (${key}, ${text}) select n % 5, n::text from generate_series(1, 30) n where n % 5 between 1 and 4`,
    `create index ${draft.name()} on ${parent} (${text})`,
    `create index ${draft.name()} on only ${parent} (at)`,
    `create trigger ${draft.name()} before update on ${parent} for each row execute function suppress_redundant_updates_trigger()`,
    ...(way === 'hash' ? [] : [`alter table ${parent} add constraint ${draft.name()} unique (${key}, at, ${text})`]),
  );
  draft.comment(`table ${parent}`);
  draft.grant(['select', 'insert'], parent);
  draft.grant(['select', 'insert'], low);
  if (draft.random.isChosen(0.4))
    draft.add(`create publication ${draft.name()} for table ${parent} with (publish_via_partition_root = true)`);
}

function inheritance(draft: Draft): void {
  const [first, second, child, lone] = [draft.qualified(), draft.qualified(), draft.qualified(), draft.qualified()];
  const [shared, own] = [draft.name(), draft.name()];
  draft.add(
    `create table ${first} (${shared} int default 1 check (${shared} > 0), a text not null default 'a')`,
    `create table ${second} (${shared} int default 1, b text)`,
    `create table ${child} (${own} text default ${draft.text()}, a text default 'overridden') inherits (${first}, ${second})`,
    `alter table ${child} alter ${shared} set default 9`,
    `create table ${lone} (a text not null, ${shared} int check (${shared} > 0))`,
    `alter table ${lone} add constraint ${draft.name()} check (${shared} > 1) no inherit`,
    `insert into ${child} default values`,
    `insert into ${first} default values`,
    `create table ${draft.qualified()} ()`,
    `create table ${draft.qualified()} (like ${child} including all)`,
  );
  draft.comment(`column ${child}.${own}`);
}

function routines(draft: Draft): void {
  const [plain, atomic, many, setof, procedure, aggregate] = Array.from({ length: 6 }, () => draft.qualified()) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const argument = draft.name();
  const tag = draft.pick(['$$', '$body$', '$_$', '$größe$']);
  draft.add(
    `create function ${plain}(${argument} text default ${draft.text()}, variadic rest int[] default '{}') returns text language plpgsql ${draft.pick(['immutable', 'stable', 'volatile'])} ${draft.may(0.5, 'strict')} ${draft.pick(['', 'parallel safe', 'parallel restricted'])} cost 7 ${draft.may(0.4, 'security definer')} set search_path = ${draft.schema}, "odd, one" set work_mem = '4MB' as ${tag}
begin
  return ${argument} || ${literal(draft.pick(oddTexts).replaceAll('$', ''))}; -- \\! no
end ${tag}`,
    `create function ${atomic}(a int, out b int, out c text) language sql begin atomic select a + 1, ${draft.text()}::text; end`,
    `create function ${many}(inout x anyelement, y anyarray) language sql as ${literal('select x')}`,
    `create function ${setof}(int) returns table (n int, ${quote('T x')} text) language sql rows 5 stable as ${literal("select $1, 'a;b'")}`,
    `create procedure ${procedure}(in a int, inout b text default null) language plpgsql as ${literal('begin b := a::text; end')}`,
    `create aggregate ${aggregate} (int) (sfunc = int4pl, stype = int, initcond = '5', combinefunc = int4pl, parallel = safe, msfunc = int4pl, minvfunc = int4mi, mstype = int)`,
  );
  draft.comment(`function ${plain}(text, int[])`);
  draft.comment(`procedure ${procedure}(int, text)`);
  draft.comment(`aggregate ${aggregate}(int)`);
  draft.grant(['execute', 'all'], `function ${atomic}(int)`);
  draft.grant(['execute'], `procedure ${procedure}(int, text)`);
  const view = draft.qualified();
  draft.add(`create view ${view} as select ${aggregate}(n) as total, (${atomic}(3)).c from ${setof}(2) group by 2`);
}

function operators(draft: Draft): void {
  const [type, left, cast] = [draft.qualified(), draft.qualified(), draft.qualified()];
  const sign = draft.pick(['<#>', '@@@', '~~>', '|?|']);
  draft.add(
    `create type ${type} as (a int, b int)`,
    `create function ${left}(${type}, int) returns boolean language sql immutable as ${literal('select ($1).a > $2')}`,
    `create operator ${draft.schema}.${sign} (function = ${left}, leftarg = ${type}, rightarg = int, restrict = scalargtsel, join = scalargtjoinsel)`,
    `create function ${cast}(${type}) returns int language sql immutable as ${literal('select ($1).a')}`,
    `create cast (${type} as int) with function ${cast}(${type})${draft.pick(['', ' as assignment'])}`,
    `create view ${draft.qualified()} as select row (3, 4)::${type} operator(${draft.schema}.${sign}) 2 as holds`,
  );
  draft.comment(`operator ${draft.schema}.${sign} (${type}, int)`);
  draft.comment(`cast (${type} as int)`);
}

function textSearch(draft: Draft): void {
  const [configuration, dictionary, collation, held] = [
    draft.qualified(),
    draft.qualified(),
    draft.qualified(),
    draft.qualified(),
  ];
  draft.add(
    `create text search dictionary ${dictionary} (template = simple, stopwords = english, accept = false)`,
    `create text search configuration ${configuration} (copy = ${draft.pick(['simple', 'german'])})`,
    `alter text search configuration ${configuration} alter mapping for word, asciiword with ${dictionary}, simple`,
    `create collation ${collation} (provider = icu, locale = ${draft.pick(["'de-u-co-phonebk'", "'und-u-ks-level2'"])}, deterministic = ${draft.pick(['true', 'false'])})`,
    `create table ${held} (words tsvector generated always as (to_tsvector(${literal(configuration)}::regconfig, body)) stored, body text collate ${collation} default ${draft.text()})`,
    `insert into ${held} values (default, 'the ships sail')`,
    `create conversion ${draft.qualified()} for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8`,
  );
  draft.comment(`text search configuration ${configuration}`);
  draft.comment(`collation ${collation}`);
}

/** Tables and views that need each other. */
function circles(draft: Draft): void {
  const [left, right, seen, routine] = [draft.qualified(), draft.qualified(), draft.qualified(), draft.qualified()];
  draft.add(
    `create table ${left} (id int primary key, other int)`,
    `create table ${right} (id int primary key, other int references ${left} deferrable)`,
    `alter table ${left} add constraint ${draft.name()} foreign key (other) references ${right} deferrable initially deferred`,
    `begin; set constraints all deferred; insert into ${left} values (1, 1); insert into ${right} values (1, 1); commit`,
    `create view ${seen} as select id, other from ${left}`,
    `create function ${routine}(${seen}) returns int language sql stable as ${literal('select $1.id')}`,
    `create or replace view ${seen} as select id, other, 1 as one from ${left}`,
    `create view ${draft.qualified()} as select ${routine}(s) as id from ${seen} s`,
    `create table ${draft.qualified()} (a ${left}, b ${seen}[])`,
  );
}

function privileges(draft: Draft): void {
  const [role, other] = [draft.role(), draft.role()];
  draft.add(
    `alter default privileges in schema ${draft.schema} grant ${draft.pick(['select', 'insert, update', 'all'])} on tables to ${role}${draft.may(0.3, ' with grant option')}`,
    `alter default privileges in schema ${draft.schema} grant execute on functions to ${other}`,
    `grant ${draft.pick(['usage', 'create', 'all'])} on schema ${draft.schema} to ${role}${draft.may(0.4, ' with grant option')}`,
    `grant usage on schema ${draft.schema} to public`,
  );
  draft.comment(`schema ${draft.schema}`);
}

const makers = [
  enumType,
  domainType,
  compositeType,
  table,
  table,
  partitions,
  inheritance,
  routines,
  operators,
  textSearch,
  circles,
  privileges,
];

/**
 * Returns the statements of one case. The caller must run each statement in its own transaction, because Postgres
 * refuses a few of them.
 */
export function oddSchema(seed: number, number: number, roles: readonly string[]): string[] {
  const draft = new Draft(new SeededRandom(seed * 31 + number), `c${number}n`, roles);
  draft.add(`create schema ${draft.schema}`);
  for (const make of draft.random.pickSome(makers, 4 + draft.random.below(5))) make(draft);
  return draft.statements;
}
