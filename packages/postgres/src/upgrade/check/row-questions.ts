import type pg from 'pg';
import { z } from 'zod';
import { callsOwnCodeSql } from '../../load/deferred-checks';
import { readRows } from '../session';

/** A question about the rows of an object whose expressions call the customer's functions. */
export interface RowQuestion {
  /** The object in the customer's words, such as `index public.orders_code`. */
  object: string;
  /** The role that asks: the object's owner. Null if the owner is no role of the customer. */
  role: string | null;
  /** The recorded number of pages. The exact size would need a lock. */
  pages: number;
  /** A query that returns a row, or fails, if the upgrade would be refused. It calls the customer's functions. */
  sql: string;
  /** Returns the complaint with advice. `found` has the rows of `sql`. */
  complain: (found: readonly unknown[]) => string;
}

const keySchema = z.object({
  expression: z.string(),
  /** Two rows collide if the operators of all keys are true for them. */
  operator: z.string(),
  is_equality: z.boolean(),
  is_overlap: z.boolean(),
});
const sourceSchema = z.object({
  role: z.string().nullable(),
  pages: z.number(),
  relation: z.string(),
  source: z.string(),
});
const columnSchema = sourceSchema.extend({
  kind: z.literal('column'),
  name: z.string(),
  expression: z.string(),
  is_required: z.boolean(),
});
const indexSchema = sourceSchema.extend({
  kind: z.literal('index'),
  index: z.string(),
  constraint_name: z.string().nullable(),
  is_unique: z.boolean(),
  are_nulls_equal: z.boolean(),
  predicate: z.string().nullable(),
  keys: z.array(keySchema),
});
const partitionsSchema = sourceSchema.extend({
  kind: z.literal('partitions'),
  /** A column that the UPDATE of the advice can set. */
  column: z.string(),
  partitions: z.array(z.object({ name: z.string(), bounds: z.string() })),
});
const factSchema = z.object({ fact: z.discriminatedUnion('kind', [columnSchema, indexSchema, partitionsSchema]) });
type Index = z.infer<typeof indexSchema>;

const isOwnTable = (kind: string): string => `c.relkind = '${kind}' and c.relpersistence <> 't' and c.relnamespace in (
    select n.oid from pg_catalog.pg_namespace n where n.nspname !~ '^pg_' and n.nspname <> 'information_schema')`;

/**
 * SQL for the role that asks about the objects of the owner `o`, a row of pg_roles. Nobody can act as
 * pg_database_owner, so the database's owner, who has the same rights, asks instead.
 */
const roleSql = `(select case when s.rolsuper or s.rolname ~ '^pg_' then null else s.rolname end
    from pg_catalog.pg_roles s
    where s.oid = case when o.rolname = 'pg_database_owner' then (select datdba from pg_catalog.pg_database
      where datname = pg_catalog.current_database())
      else o.oid end)`;
const collate = (oid: string): string =>
  `case when ${oid} = 0 then '' else ' collate ' || ${oid}::regcollation::text end`;

/**
 * SQL for a table as the upgrade fills it, with generated columns computed again. The subquery has the table's name,
 * because an expression may use that name for the row.
 */
const computedSourceSql = `(select pg_catalog.format('(select %s from only %s) as %I', pg_catalog.string_agg(
      coalesce(g.expression || ' as ', '') || pg_catalog.quote_ident(a.attname), ', ' order by a.attnum),
        c.oid::regclass, c.relname)
    from pg_catalog.pg_attribute a left join computed g on g.attrelid = a.attrelid and g.attnum = a.attnum
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)`;

const keysSql = `(select pg_catalog.json_agg(pg_catalog.json_build_object(
      'expression', '(' || pg_catalog.pg_get_indexdef(i.indexrelid, k.number::int,
        false) || ')' || ${collate('i.indcollation[k.number - 1]')},
      'operator', pg_catalog.format('operator(%I.%s)', n.nspname, e.oprname),
      'is_equality', e.oprname = '=' and exists (select from pg_catalog.pg_amop m
        join pg_catalog.pg_am b on b.oid = m.amopmethod
        where m.amopopr = e.oid and m.amopstrategy = 3 and b.amname = 'btree'),
      'is_overlap', e.oid = '&&(anyrange,anyrange)'::regoperator) order by k.number)
    from pg_catalog.generate_series(1, i.indnkeyatts) k (number)
    join pg_catalog.pg_opclass p on p.oid = i.indclass[k.number - 1]
    left join pg_catalog.pg_amop q on x.conexclop is null and q.amopfamily = p.opcfamily and q.amopstrategy = 3
      and q.amoplefttype = p.opcintype and q.amoprighttype = p.opcintype
    left join pg_catalog.pg_operator e on e.oid = coalesce(x.conexclop[k.number], q.amopopr)
    left join pg_catalog.pg_namespace n on n.oid = e.oprnamespace)`;

/** Reads all definitions in one query, without running any of them. */
const factsSql = `with recursive computed as materialized (
    select a.attrelid, a.attnum, a.attname, a.attnotnull,
      '(' || pg_catalog.pg_get_expr(d.adbin, d.adrelid) || ')' || ${collate('a.attcollation')} as expression
    from pg_catalog.pg_attribute a join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      join pg_catalog.pg_class c on c.oid = a.attrelid
    where a.attgenerated = 's' and not a.attisdropped and ${isOwnTable('r')}
      and ${callsOwnCodeSql('pg_attrdef', 'd.oid')}),
  indexes as materialized (
    select i.*, exists (select from computed g where g.attrelid = i.indrelid and (g.attnum = any (i.indkey)
        or exists (select from pg_catalog.pg_depend u where u.classid = 'pg_catalog.pg_class'::regclass
          and u.objid = i.indexrelid
          and u.refclassid = 'pg_catalog.pg_class'::regclass and u.refobjid = i.indrelid
            and u.refobjsubid = g.attnum))) as is_of_computed
    from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indrelid where i.indisvalid
      and ${isOwnTable('r')}),
  below (oid) as (
    select t.partrelid from pg_catalog.pg_partitioned_table t join pg_catalog.pg_class c on c.oid = t.partrelid
      where t.partexprs is not null and ${isOwnTable('p')} and ${callsOwnCodeSql('pg_class', 't.partrelid')}
    union select h.inhrelid from pg_catalog.pg_inherits h join below on below.oid = h.inhparent)
  select pg_catalog.json_build_object('kind', 'column', 'role', ${roleSql}, 'pages', c.relpages, 'relation',
    c.oid::regclass::text,
      'source', 'only ' || c.oid::regclass, 'name', pg_catalog.quote_ident(g.attname), 'expression', g.expression,
        'is_required', g.attnotnull) as fact
    from computed g join pg_catalog.pg_class c on c.oid = g.attrelid join pg_catalog.pg_roles o on o.oid = c.relowner
  union all select pg_catalog.json_build_object('kind', 'index', 'role', ${roleSql}, 'pages', c.relpages, 'relation',
    c.oid::regclass::text,
      'source', case when i.is_of_computed then ${computedSourceSql} else 'only ' || c.oid::regclass end,
      'index', i.indexrelid::regclass::text, 'constraint_name', pg_catalog.quote_ident(x.conname), 'is_unique',
        i.indisunique or i.indisexclusion,
      'are_nulls_equal', i.indnullsnotdistinct, 'predicate', pg_catalog.pg_get_expr(i.indpred, i.indrelid), 'keys',
        ${keysSql})
    from indexes i join pg_catalog.pg_class c on c.oid = i.indrelid join pg_catalog.pg_roles o on o.oid = c.relowner
    left join pg_catalog.pg_constraint x on x.conindid = i.indexrelid and x.contype in ('p', 'u', 'x')
    where i.is_of_computed or (i.indexprs is not null or i.indpred is not null)
    and ${callsOwnCodeSql('pg_class', 'i.indexrelid')}
  union all select pg_catalog.json_build_object('kind', 'partitions', 'role', w.role, 'pages', pg_catalog.sum(w.pages),
    'relation', w.root::text, 'source', '',
      'column', (select pg_catalog.quote_ident(a.attname) from pg_catalog.pg_attribute a where a.attrelid = w.root
        and a.attnum > 0 and not a.attisdropped
        order by a.attgenerated <> '' or a.attidentity = 'a', a.attnum limit 1),
      'partitions', pg_catalog.json_agg(pg_catalog.json_build_object('name', w.name, 'bounds', w.bounds)
        order by w.name))
    from (select ${roleSql} as role, c.relpages as pages, pg_catalog.pg_partition_root(c.oid) as root,
      c.oid::regclass::text as name,
        pg_catalog.pg_get_partition_constraintdef(c.oid) as bounds
      from below join pg_catalog.pg_class c on c.oid = below.oid and c.relkind = 'r'
        join pg_catalog.pg_roles o on o.oid = c.relowner) w
    where w.bounds is not null group by w.role, w.root`;

/**
 * Returns the questions, the smallest first. Without an expression that calls a function of the customer, the list is
 * empty.
 */
export async function readQuestions(reader: pg.ClientBase): Promise<RowQuestion[]> {
  const facts = (await readRows(reader, factSchema, factsSql)).map(({ fact }) => fact);
  const questions = facts.map((fact): RowQuestion => {
    if (fact.kind === 'column') return askColumn(fact);
    return fact.kind === 'index' ? askIndex(fact) : askPartitions(fact);
  });
  return questions.sort((one, other) => one.pages - other.pages);
}

/**
 * Asks whether a generated column can be computed. If the column may be null, the condition is `< 0`, which is never
 * true. The query then only computes the values.
 */
function askColumn({
  role,
  pages,
  source,
  relation,
  name,
  expression,
  is_required: isRequired,
}: z.infer<typeof columnSchema>): RowQuestion {
  return {
    object: `column ${relation}.${name}`,
    role,
    pages,
    sql: `select from ${source} where pg_catalog.num_nulls(${expression}) ${isRequired ? '> 0' : '< 0'} limit 1`,
    complain: () =>
      'it is NOT NULL, and its functions as they are now give NULL for rows that are there. ' +
      'Change the rows or the functions first.',
  };
}

const remedy = 'Change the rows or the functions until this succeeds, which names a collision';

function askIndex(index: Index): RowQuestion {
  const { role, pages, relation, constraint_name: constraint } = index;
  return {
    object: constraint === null ? `index ${index.index}` : `constraint ${constraint} of table ${relation}`,
    role,
    pages,
    sql: index.is_unique
      ? collisionSql(index)
      : `${keysOf(index)} select from k where pg_catalog.num_nulls(${namesOf(index)}) < 0 limit 1`,
    complain: () =>
      `rows that are there collide by its functions as they are now. ${remedy}: REINDEX INDEX ${index.index};`,
  };
}

const namesOf = ({ keys }: Index, from = ''): string => keys.map((_, number) => `${from}k${number}`).join(', ');

/** Returns SQL that computes each key once. */
function keysOf({ source, predicate, keys }: Index): string {
  const columns = keys.map(({ expression }, number) => `${expression} as k${number}`).join(', ');
  return `with k as materialized (select ${columns} from ${source}${predicate === null ? '' : ` where ${predicate}`})`;
}

/** Returns SQL that finds colliding keys. A null key collides with nothing unless the index has NULLS NOT DISTINCT. */
function collisionSql(index: Index): string {
  const { keys } = index;
  const [computed, names] = [keysOf(index), namesOf(index)];
  const others = keys.flatMap((key, number) => (key.is_equality ? [] : [{ ...key, name: `k${number}` }]));
  const [only] = others;
  const isWhole = `pg_catalog.num_nulls(${names}) = 0`;
  if (only === undefined)
    return (
      `${computed} select from k${index.are_nulls_equal ? '' : ` where ${isWhole}`} ` +
      `group by ${names} having count(*) > 1 limit 1`
    );
  if (others.length === 1 && only.is_overlap) {
    const equal = keys.flatMap(({ is_equality: isEquality }, number) => (isEquality ? [`k${number}`] : []));
    const within = `${equal.length === 0 ? '' : `partition by ${equal.join(', ')} `}order by ${only.name}`;
    // If any ranges overlap, two neighbours in the order of their starts overlap as well.
    return `${computed}
      select from (select ${only.name} as r, pg_catalog.lag(${only.name}) over (${within}) as before from k
      where ${isWhole} and not pg_catalog.isempty(${only.name})) w where r ${only.operator} before limit 1`;
  }
  // The rows are compared pair by pair. Many rows take too long and stay unchecked. An index over a copy of the rows
  // would be faster, but needs a writable transaction, in which the customer's functions could write as well.
  const collide = keys.map(({ operator }, number) => `a.k${number} ${operator} b.k${number}`).join(' and ');
  return `${computed}, r as materialized (select pg_catalog.row_number() over () as n, k.* from k where ${isWhole})
    select from r as a join r as b on a.n < b.n and ${collide} limit 1`;
}

const foundSchema = z.array(z.object({ n: z.number() }));
const namedMax = 5;

function askPartitions({ role, pages, relation, column, partitions }: z.infer<typeof partitionsSchema>): RowQuestion {
  return {
    object: `table ${relation}`,
    role,
    pages,
    sql: partitions
      .map(({ name, bounds }, n) => `(select ${n} as n from only ${name} where not (${bounds}) limit 1)`)
      .join(' union all '),
    complain: (found) => {
      const names = foundSchema.parse(found).flatMap(({ n }) => partitions[n]?.name ?? []);
      const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : '';
      const where = `${names.slice(0, namedMax).join(', ')}${more}`;
      const update = `UPDATE ${relation} SET ${column} = ${column};`;
      return (
        'by the functions of its partition key as they are now, ' +
        `rows of ${where} belong to another partition or to none. ` +
        `Once there is a partition for each, this moves them: ${update}`
      );
    },
  };
}
