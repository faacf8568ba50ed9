/**
 * Content that the release notes of 17 and 18 concern, and values of many types, are the same after an upgrade during
 * which rows are written.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { createCustomer, cutOver, endMove, startTwoServers, type TwoServers } from '../../test/two-servers';
import { runSql } from '../testing/run-sql';
import { catchUp } from './bring-level';
import { askRows, type RowLimits } from './check/ask-rows';
import { checkUpgrade } from './check/prechecks';
import { trySchema } from './check/try-schema';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers();
});
afterAll(() => servers.stop());

/** Limits that are too high to be reached, so that no result depends on time. */
const unhurried: RowLimits = { statementMs: 600_000, totalMs: 3_600_000, tempFileKb: 1_048_576 };

const values: Record<string, string[]> = {
  numeric: [
    'NaN',
    'Infinity',
    '-Infinity',
    '0.00000000000000000001',
    '1e100',
    `${'9'.repeat(400)}.${'1'.repeat(300)}`,
    '-0.0',
    '1.10',
  ],
  'numeric(10, -2)': ['12345', '49'],
  float8: ['NaN', '-Infinity', '1e-310', '0.1', '-0', '123456789012345680', '5e-324'],
  float4: ['3.4e38', '1e-45', '0.1', '16777217'],
  money: ['-1234.5', '92233720368547758.07'],
  jsonb: [
    '{"b": 1.10, "a": [1e3, -0.0, 1E-7, null, true], "a": {"": "\\u00e9\\ud83d\\ude00"}, "12": 2, "2": 1}',
    '1.00000000000000000000000000000000001',
    '"\\\\u0041"',
    '[]',
  ],
  json: ['{"b" : 1.10,  "a":1, "a":2}', '[1e3, "\\u0041"]'],
  jsonpath: [
    '$."a"[*] ? (@.b > 1.10 && exists (@."c d")).datetime("HH24:MI")',
    'strict $[last - 1 to last].keyvalue().key',
    '$.** ? (@ like_regex "^a" flag "i")',
    '-$.a[0, 2].size() + 1',
  ],
  interval: [
    '1 year 2 mons -3 days 04:05:06.789',
    '-1 day',
    '00:00:00',
    '-178000000 years',
    '1 day ago',
    'P1Y2M3DT4H5M6S',
  ],
  date: ['infinity', '4713-01-01 BC', '5874897-12-31'],
  timestamptz: [
    'infinity',
    '2026-03-29 02:30:00 Europe/Vienna',
    '4714-11-24 00:00:00+00 BC',
    '294276-12-31 23:59:59.999999+00',
    '2020-01-01 12:00 EST',
  ],
  timestamp: ['-infinity', '1999-12-31 23:59:60'],
  timetz: ['24:00:00+15:59', '04:05:06.789-08'],
  tsvector: ["'a':1A,2B 'it''s' 'ÄÖ':16383", "'Zwei Wörter':3C"],
  tsquery: ["'fat' & ( 'rat':AB* | !'cat' ) <2> 'x'", "'it''s'"],
  xml: ['<a b="1">x<!-- y --></a>', 'text only'],
  inet: ['::ffff:1.2.3.4/96', '10.1.2.3/8'],
  cidr: ['10.0.0.0/8', '2001:db8::/32'],
  macaddr8: ['08:00:2b:01:02:03:04:05'],
  uuid: ['{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}'],
  bytea: ['\\x00ff', ''],
  bit: ['1'],
  varbit: ['', '10101'],
  '"char"': ['a', '\\351', ''],
  name: ['x'.repeat(63)],
  'char(5)': ['a', 'ab   '],
  'text[]': ['{NULL,"NULL","",a b,"\\"q\\"",\\\\}', '[0:1][-1:0]={{a,b},{c,d}}', '{}'],
  int4range: ['[1,5)', 'empty', '(,]'],
  nummultirange: ['{[1.10,2.0],(3,4)}', '{}'],
  tstzrange: ['["2020-01-01 00:00+00",infinity]'],
  point: ['(1e300,-0)', '(NaN,Infinity)'],
  polygon: ['((0,0),(1,1.5),(2,0))'],
  path: ['[(0,0),(1,1)]'],
  circle: ['<(1,2),3.5>'],
  line: ['{1,-1,0}'],
  pg_lsn: ['16/B374D848'],
  pg_snapshot: ['10:20:10,14,15'],
  xid8: ['18446744073709551615'],
  tid: ['(4294967295,65535)'],
  int2vector: ['1 2 3'],
  oidvector: ['1 4294967295'],
  aclitem: ['set_notes=arwdDxt/set_notes'],
  regclass: ['pg_class', 'odd."T y"', '4294967295'],
  regtype: ['numeric', 'odd.mood[]'],
  regprocedure: ['lower(text)'],
  regoper: ['pg_catalog.||/'],
  regconfig: ['german'],
  regcollation: ['"C"'],
  'odd.mood': ['sad', 'glad'],
  'odd.pair': ['(1,"a ""b"", (c)")', '(,)'],
  'odd.small': ['3'],
};

const quote = (value: string): string => `E'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
const allTypes = Object.entries(values).map(
  ([type, list], number) =>
    `create table odd.v${number} (id int primary key, v ${type}, all_of ${type.endsWith('[]') ? type : `${type}[]`});
    insert into odd.v${number} (id, v, all_of) select n, v, ${type.endsWith('[]') ? 'v' : 'array[v, null]'} from (values ${list
      .map((value, at) => `(${at}, ${quote(value)}::${type})`)
      .join(', ')}, (99, null)) w (n, v)`,
);

/** Names that 17 and 18 use for keywords or objects of the catalogue. */
const words = [
  'json_exists',
  'json_query',
  'json_scalar',
  'json_serialize',
  'json_table',
  'json_value',
  'merge_action',
  'nested',
  'keep',
  'source',
  'target',
  'conditional',
  'unconditional',
  'omit',
  'path',
  'plan',
  'string',
  'error',
  'empty',
  'periods',
  'virtual',
  'enforced',
  'objects',
  'casefold',
  'uuidv7',
  'crc32',
  'reverse',
  'array_sort',
  'gamma',
  'random',
  'to_bin',
  'to_oct',
  'xmltext',
];
const newWords = words.map(
  (word) => `create table odd."${word}" ("${word}" int default 1, id int primary key);
    create function odd."${word}"(a int, b int) returns int language sql immutable as 'select a + b';
    alter table odd."${word}" add computed int generated always as (odd."${word}"(id, 1)) stored, add check (odd."${word}"(id, 2) > 0), add unique ("${word}", id);
    create index on odd."${word}" ((odd."${word}"(id, 3)));
    create view odd."v_${word}" as select "${word}" as "${word}", t."${word}" + odd."${word}"(1, 2) as sum from odd."${word}" t;
    insert into odd."${word}" (id) values (1)`,
);

const odd = [
  `create schema odd; create type odd.mood as enum ('sad', 'glad'); create type odd.pair as (a int, b text); create domain odd.small as int check (value < 10)`,
  'create table odd."T y" (a int)',
  // Objects that Postgres 18 does not support, or supports only in another form.
  'create unlogged table odd.part_unlogged (a int primary key) partition by range (a); create unlogged table odd.part_u0 partition of odd.part_unlogged default; insert into odd.part_unlogged values (1)',
  'create table odd.named_not_null (a int constraint mine not null, b int not null primary key); insert into odd.named_not_null values (1, 1)',
  'create role notes_reader; grant all on odd.named_not_null to notes_reader; grant truncate, references, trigger on odd.named_not_null to public',
  // Collations of ICU, with rules, and one in which different texts are equal.
  `create collation odd.de (provider = icu, locale = 'de-u-co-phonebk'); create collation odd.low (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
   create collation odd.ruled (provider = icu, locale = 'und', rules = '& a < g'); create collation odd.libc (provider = libc, locale = 'C')`,
  `create table odd.sorted (id int primary key, de text collate odd.de unique, low text collate odd.low unique, ruled text collate odd.ruled check (ruled > 'a' collate odd.ruled), c text collate "C");
   create index on odd.sorted (lower(de), ruled, c text_pattern_ops); insert into odd.sorted values (1, 'Ähre', 'Café', 'b', 'z'), (2, 'Zebra', 'Thé', 'g', 'a')`,
  `create table odd.by_text (t text collate odd.de primary key) partition by range (t); create table odd.by_text_a partition of odd.by_text for values from ('A') to ('M');
   create table odd.by_text_m partition of odd.by_text for values from ('M') to ('ZZ'); insert into odd.by_text values ('Ähre'), ('Öl'), ('Zaun')`,
  // Hashes that 17 and 18 must compute like 16.
  ...[
    'int',
    'bigint',
    'text',
    'uuid',
    'numeric',
    'date',
    'timestamptz',
    'inet',
    'jsonb',
    'bytea',
    'boolean',
    'float8',
    '"char"',
    'char(4)',
    'interval',
    'text collate "C"',
  ].map(
    (type, number) => `create table odd.h${number} (k ${type}, id int, primary key (k, id)) partition by hash (k);
      ${[0, 1, 2].map((remainder) => `create table odd.h${number}_${remainder} partition of odd.h${number} for values with (modulus 3, remainder ${remainder});`).join('\n')}`,
  ),
  `do $$ declare n int; list text[] := array['n', 'n', 'n::text', $q$md5(n::text)::uuid$q$, 'n / 7.0', $q$date '2020-01-01' + n$q$, $q$timestamptz '2020-01-01 00:00+00' + n * interval '1 hour'$q$,
      $q$inet '10.0.0.0' + n$q$, 'to_jsonb(n)', $q$n::text::bytea$q$, 'n % 2 = 0', 'n / 7.0::float8', $q$chr(40 + n % 80)::"char"$q$, $q$(n % 100)::text$q$, $q$n * interval '1 minute'$q$, 'n::text'];
    begin for n in 0 .. 15 loop execute format('insert into odd.h%s select %s, n from generate_series(1, 60) n', n, list[n + 1]); end loop; end $$`,
  // Unicode normalization and lower case.
  `create table odd.texts (id int primary key, t text, nfc text generated always as (normalize(t, nfkc)) stored, low text generated always as (lower(t collate odd.de)) stored, n text check (n is nfc normalized));
   insert into odd.texts values (1, U&'\\1E9B\\0323 \\+01F9EC \\+01E030', default, default, U&'\\1E9B\\0323')`,
  // Functions with and without their own search path.
  `create function odd.helper(int) returns int language sql immutable as 'select $1'; create function odd.pathed(int) returns int language sql immutable set search_path = odd as 'select helper($1)';
   create table odd.pathed_index (id int primary key); create index on odd.pathed_index (odd.pathed(id)); create materialized view odd.pathed_view as select odd.pathed(id) from odd.pathed_index`,
  `create statistics odd.stats (mcv, dependencies) on id, low from odd.texts; alter statistics odd.stats set statistics 0; alter table odd.texts alter t set statistics 0, alter nfc set compression pglz, alter t set storage external`,
  'create sequence odd.cyclic cycle maxvalue 3; create table odd.ids (id int generated always as identity (start 7 increment by -2 minvalue -100 maxvalue 100), v int); insert into odd.ids (v) values (1), (2)',
  `create table odd.parent (id int primary key, a text); create table odd.child (b text) inherits (odd.parent); alter table odd.child no inherit odd.parent; alter table odd.child inherit odd.parent;
   insert into odd.child values (1, 'a', 'b'); create index on odd.parent using brin (id); create index on odd.parent using hash (a); create index on odd.parent using spgist (a)`,
  `create table odd.rooms (room int, during tsrange, exclude using gist (during with &&) where (room > 0)); insert into odd.rooms values (1, '[2020-01-01, 2020-01-02)')`,
  'create table odd.deferred (id int primary key, other int references odd.deferred deferrable initially deferred, late int unique deferrable initially deferred); insert into odd.deferred values (1, 1, 1)',
  'create rule noted as on insert to odd.parent do also insert into odd."T y" values (new.id); create view odd.checked as select * from odd.parent where id < 10 with cascaded check option',
  'create procedure odd.proc(inout a int) language plpgsql as $$ begin a := a + 1; end $$; create aggregate odd.total (int) (sfunc = int4pl, stype = int, initcond = 0)',
  `create view odd.constructs as select extract(year from now()) as y, substring('abc' from 2), overlay('abc' placing 'x' from 1), position('a' in 'b'), trim(both from 'a'), now() at time zone 'UTC' as z,
     'a' similar to 'b' as s, interval '1' day as i, json_object('a': 1), json_array(1, 2), json_arrayagg(a), xmlelement(name a, 'b'), 1 = any (array[1]), (1, 2) overlaps (3, 4) is null as o, current_user as u, a is json as j
   from (values ('1')) w (a) group by a`.replace('(1, 2) overlaps (3, 4) is null as o, ', ''),
  ...[
    'hstore',
    'citext',
    'ltree',
    'pg_trgm',
    'btree_gist',
    'btree_gin',
    'intarray',
    'cube',
    'isn',
    'seg',
    'unaccent',
    'uuid-ossp',
    'pgcrypto',
    'fuzzystrmatch',
    'tablefunc',
    'dict_int',
  ].map((name) => `create extension "${name}" schema public`),
  `create table odd.extended (id int primary key, h public.hstore, c public.citext unique, l public.ltree, b public.cube, n public.isbn, s public.seg, i int[]);
   insert into odd.extended values (1, 'a=>1,b=>NULL', 'ÄbC', 'Top.a_b', '(1,2),(3,4.5)', '978-0-393-04002-9', '1.5 .. 2.5', '{3,1}');
   create index on odd.extended using gist (l); create index on odd.extended using gin (h); create index on odd.extended using gin ((c::text) public.gin_trgm_ops); create index on odd.extended using gin (i public.gin__int_ops)`,
];

const during = [
  ...Object.keys(values).map(
    (_type, number) =>
      `insert into odd.v${number} select id + 1000, v, all_of from odd.v${number}; update odd.v${number} set v = null where id = 1000`,
  ),
  "update odd.h2 set k = k || 'x' where id % 2 = 0; delete from odd.h8 where id < 10; update odd.h12 set k = 'b' where id < 5",
  "insert into odd.sorted values (3, 'Ödland', 'Tee', 'h', 'q'); update odd.by_text set t = 'Ärmel' where t = 'Zaun'",
  "insert into odd.texts (id, t) values (2, 'ﬁ'); insert into odd.extended (id, h, c) values (2, 'x=>y', 'Z'); insert into odd.part_unlogged values (2); insert into odd.ids (v) values (3)",
  "insert into odd.rooms values (1, '[2021-01-01, 2021-01-02)'); update odd.deferred set other = 1; insert into odd.child values (2, 'c', 'd'); refresh materialized view odd.pathed_view",
];

test('a database with many kinds of content is upgraded from 16 to 18 while it is written to: the preflight has no error, and nothing differs', async () => {
  const databaseName = 'set_notes';
  const move = await createCustomer(servers, databaseName, ...odd, ...allTypes, ...newWords);
  const { path, findings } = await checkUpgrade({
    url: move.oldUrl,
    databaseName,
    toMajor: 18,
    extensionsOfTarget: (
      await runSql<{ name: string }>(servers.target.adminUrl, 'select name from pg_available_extensions')
    ).map(({ name }) => name),
    freeBytes: 1e12,
  });
  const trial = { ...move, secret: randomBytes(32).toString('hex'), fence: '0' };
  const told = [
    ...findings,
    ...(await askRows({ url: move.oldUrl, databaseName, toMajor: 18, limits: unhurried })),
    ...(await trySchema(trial)),
  ];
  expect(told.filter(({ level, code }) => level === 'ERROR' || code === 'not_checked')).toEqual([]);
  expect(path).toBe('logical');
  for (const stage of [copySchema, copyData]) await stage(move);
  for (const statement of during) await runSql(move.ownUrl, statement);
  for (const stage of [catchUp, cutOver]) await stage(move);
  const compared = await compareDatabases(move, null);
  expect(compared).toMatchObject({ outcome: 'equal', names: [] });
  expect(compared.tables).toBeGreaterThan(100);
  for (let number = 0; number < 16; number += 1) {
    // Each row must be found by its key. In a search by key, the planner reads only one partition.
    const missing = `select count(*)::int as n from odd.h${number} t where not exists (select from odd.h${number} o where o.k = t.k and o.id = t.id)`;
    expect(await runSql(move.ownTargetUrl, missing)).toEqual([{ n: 0 }]);
  }
  await endMove(move);
});
