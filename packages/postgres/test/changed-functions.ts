/** Content that an upgrade refuses, because its function has changed since its rows were written. */
export interface ChangedFunction {
  name: string;
  /** The statements that create the content. They run after `define('$1')` has created the function `f`. */
  made: string[];
  /** The SQL expression that the function returns later. */
  later: string;
  /** Matches the detail of the preflight's finding. */
  detail: RegExp;
}

/** Returns the statement that makes the function `f` return `value`, an SQL expression. */
export const define = (value: string): string =>
  `create or replace function public.f(int) returns int language plpgsql immutable as 'begin return ${value}; end'`;

const collide = (object: string, index: string): RegExp =>
  new RegExp(
    `^${object} cannot go over: rows that are there collide by its functions as they are now\\. .*: REINDEX INDEX ${index};$`,
  );

export const changedFunctions: ChangedFunction[] = [
  {
    name: 'unique_index',
    made: [
      'create table t (a int primary key, b int)',
      'create unique index by_f on t (f(a), b)',
      'insert into t values (1, 7), (2, 7)',
    ],
    later: '0',
    detail: collide('index public.by_f', 'public.by_f'),
  },
  {
    name: 'operator_index',
    made: [
      'create operator ## (rightarg = int, function = f)',
      'create table t (a int primary key)',
      'create unique index by_sign on t ((## a)) where ## a is not null',
      'insert into t values (1), (2)',
    ],
    later: '0',
    detail: collide('index public.by_sign', 'public.by_sign'),
  },
  {
    name: 'unique_nulls',
    made: [
      'create table t (a int primary key); create unique index by_f on t (f(a)) nulls not distinct',
      'create table u (a int primary key); create unique index u_by_f on u (f(a))',
      'insert into t values (1), (2); insert into u values (1), (2)',
    ],
    later: 'null',
    detail: collide('index public.by_f', 'public.by_f'),
  },
  {
    name: 'unique_computed',
    made: [
      'create table t (a int primary key, g int generated always as (f(a)) stored constraint one_each unique)',
      'insert into t values (1), (2)',
    ],
    later: '0',
    detail: collide('constraint one_each of table public.t', 'public.one_each'),
  },
  {
    name: 'exclusion_of_ranges',
    made: [
      'create table t (id int primary key, a int, b int, constraint apart exclude using gist (int4range(f(a), f(b)) with &&))',
      'insert into t values (1, 1, 3), (2, 4, 6), (3, 3, 3), (4, 7, 9)',
    ],
    later: 'case $1 when 4 then 2 else $1 end',
    detail: collide('constraint apart of table public.t', 'public.apart'),
  },
  {
    name: 'exclusion_of_rooms',
    made: [
      'create extension btree_gist',
      'create table t (id int primary key, a int, b box, constraint apart exclude using gist (f(a) with =, b with &&))',
      "insert into t values (1, 1, '(0,0),(2,2)'), (2, 2, '(1,1),(3,3)'), (3, 1, '(5,5),(6,6)')",
    ],
    later: '0',
    detail: collide('constraint apart of table public.t', 'public.apart'),
  },
  {
    name: 'partitions',
    made: [
      'create table t (a int) partition by list (f(a))',
      'create table one partition of t for values in (1); create table two partition of t for values in (2)',
      'insert into t values (1), (2)',
    ],
    later: '3 - $1',
    detail:
      /^table public\.t cannot go over: .* rows of public\.one, public\.two belong to another .*: UPDATE public\.t SET a = a;$/,
  },
  {
    name: 'partitions_below',
    made: [
      'create table t (a int, b int) partition by list (b)',
      'create table ones partition of t for values in (1) partition by range (f(a))',
      'create table low partition of ones for values from (0) to (5); create table rest partition of ones default',
      'insert into t values (1, 1), (7, 1)',
    ],
    later: '$1 + 4',
    detail:
      /^table public\.t cannot go over: .* rows of public\.low belong to another .*: UPDATE public\.t SET a = a;$/,
  },
  {
    name: 'required_column',
    made: [
      'create table t (a int primary key, g int generated always as (f(a)) stored not null)',
      'insert into t values (1)',
    ],
    later: 'null',
    detail: /^column public\.t\.g cannot go over: it is NOT NULL/,
  },
  {
    name: 'raising_index',
    made: ['create table t (a int primary key); create index by_f on t (f(a)) where a > 0', 'insert into t values (1)'],
    later: '1 / ($1 - $1)',
    detail:
      /^index public\.by_f cannot go over: its functions as they are now fail for rows that are there: division by zero\. /,
  },
];
