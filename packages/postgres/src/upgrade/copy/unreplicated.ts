import pg from 'pg';
import { z } from 'zod';
import { qualify } from '../../dump/list-tables';
import { readRows } from '../session';

const positionSchema = z.object({ name: z.string(), position: z.string() });
const namedSchema = z.object({ schema: z.string(), name: z.string() });
/** The most sequences in a statement. */
const atOnce = 500;

export interface Position {
  name: string;
  last_value: string;
  is_called: boolean;
}

const sequencesSql = `select n.nspname as schema, c.relname as name from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'S' and c.relpersistence <> 't' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_class'::regclass
      and d.objid = c.oid and d.deptype = 'e') order by 1, 2`;

/** Returns the quoted names of the customer's sequences. */
export async function sequenceNames(client: pg.ClientBase): Promise<string[]> {
  return (await readRows(client, namedSchema, sequencesSql)).map(qualify);
}

function* slices(names: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < names.length; from += atOnce) yield names.slice(from, from + atOnce);
}

/**
 * Reads the positions of 500 sequences in each round trip, because the customer's writes wait during the pause. A
 * position is read as a row's text, `(last_value,is_called)`. So no cast or function of the customer is called,
 * whatever object has the sequence's name.
 */
export async function readPositions(client: pg.ClientBase, names: readonly string[]): Promise<Position[]> {
  const positions: Position[] = [];
  for (const some of slices(names)) {
    const each = some.map(
      (name) =>
        `select ${pg.escapeLiteral(name)} as name,
            pg_catalog.textin(pg_catalog.record_out(row(s.last_value, s.is_called))) as position from ${name} s`,
    );
    for (const { name, position } of await readRows(client, positionSchema, each.join(' union all '))) {
      const form = /^\((-?\d+),([tf])\)$/.exec(position);
      if (form?.[1] === undefined) throw new Error(`${name} is no sequence`);
      positions.push({ name, last_value: form[1], is_called: form[2] === 't' });
    }
  }
  return positions;
}

/**
 * Sets the target's sequences to the old positions. The caller lists `names` before the pause, to shorten the pause.
 */
export async function copySequences(
  old: pg.ClientBase,
  target: pg.ClientBase,
  names: readonly string[],
): Promise<void> {
  const positions = await readPositions(old, names);
  for (let from = 0; from < positions.length; from += atOnce) {
    const some = positions.slice(from, from + atOnce);
    const sql = `select pg_catalog.setval(name::regclass, value, called)
      from unnest($1::text[], $2::bigint[], $3::boolean[]) p (name, value, called)`;
    await target.query(sql, [some.map((p) => p.name), some.map((p) => p.last_value), some.map((p) => p.is_called)]);
  }
}

const pagesAtOnce = 512;
const pageBytes = 2048;
const grantSchema = z.object({ grantee: z.string().nullable(), privilege: z.string(), is_grantable: z.boolean() });
const objectSchema = z.object({
  oid: z.number(),
  owner: z.string(),
  grants: z.array(grantSchema),
  comment: z.string().nullable(),
});
const oidSchema = z.object({ oid: z.number() });
const pageSchema = z.object({ number: z.number(), data: z.instanceof(Buffer) });
const horizonSchema = z.object({ horizon: z.string() });

/**
 * Finds the large objects whose content, owner or grants may have been written since the previous copy. The horizon
 * `$1` is the oldest transaction that was still running at that copy. Ages are compared, because transaction numbers
 * wrap around.
 */
const changedSql = `select m.oid, pg_catalog.pg_get_userbyid(m.lomowner) as owner,
    pg_catalog.obj_description(m.oid, 'pg_largeobject') as comment,
    coalesce((select pg_catalog.json_agg(pg_catalog.json_build_object('privilege', a.privilege_type, 'is_grantable',
      a.is_grantable,
      'grantee', case when a.grantee <> 0 then pg_catalog.pg_get_userbyid(a.grantee) end))
        from pg_catalog.aclexplode(m.lomacl) a), '[]') as grants
  from pg_catalog.pg_largeobject_metadata m
  where $1::xid is null or pg_catalog.age(m.xmin) <= pg_catalog.age($1::xid)
    or m.oid in (select l.loid from pg_catalog.pg_largeobject l
      where pg_catalog.age(l.xmin) <= pg_catalog.age($1::xid)) order by m.oid`;
const horizonSql = 'select pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::xid::text as horizon';
const allSql = 'select oid from pg_catalog.pg_largeobject_metadata';
/**
 * Reads the catalogue page by page, because the functions that read a large object need a right that a reader does not
 * have.
 */
const pagesSql = `select l.pageno as number, l.data from pg_catalog.pg_largeobject l where l.loid = $1
  and l.pageno >= $2 order by l.pageno limit ${pagesAtOnce}`;
const writeSql = 'select pg_catalog.lo_put($1::oid, w.at, w.data) from unnest($2::bigint[], $3::bytea[]) w (at, data)';

async function copyObject(
  old: pg.ClientBase,
  target: pg.ClientBase,
  object: z.infer<typeof objectSchema>,
): Promise<void> {
  const { oid, owner, grants, comment } = object;
  const name = pg.escapeIdentifier;
  await target.query('begin');
  await target.query('select pg_catalog.lo_unlink(oid) from pg_catalog.pg_largeobject_metadata where oid = $1', [oid]);
  await target.query('select pg_catalog.lo_create($1::oid)', [oid]);
  for (let from = 0; ; ) {
    const pages = await readRows(old, pageSchema, pagesSql, [oid, from]);
    await target.query(writeSql, [oid, pages.map(({ number }) => number * pageBytes), pages.map(({ data }) => data)]);
    if (pages.length < pagesAtOnce) break;
    from = (pages.at(-1)?.number ?? 0) + 1;
  }
  await target.query(`alter large object ${oid} owner to ${name(owner)}`);
  for (const { grantee, privilege, is_grantable: isGrantable } of grants) {
    const who = grantee === null ? 'public' : name(grantee);
    await target.query(`grant ${privilege} on large object ${oid} to ${who}${isGrantable ? ' with grant option' : ''}`);
  }
  if (comment !== null) await target.query(`comment on large object ${oid} is ${pg.escapeLiteral(comment)}`);
  await target.query('commit');
}

/**
 * Copies the large objects that were written since `horizon`, because replication does not transfer them. If `horizon`
 * is null, all are copied. A copy keeps its oid, owner, grants and comment. Objects that were dropped on the old server
 * are removed from the target. `old` is a reader's session, and `target` the keeper's. Returns the horizon for the next
 * call.
 */
export async function copyLargeObjects(
  old: pg.ClientBase,
  target: pg.ClientBase,
  horizon: string | null,
): Promise<string> {
  const [next] = await readRows(old, horizonSchema, horizonSql);
  if (next === undefined) throw new Error('no snapshot');
  for (const object of await readRows(old, objectSchema, changedSql, [horizon])) await copyObject(old, target, object);
  const kept = new Set((await readRows(old, oidSchema, allSql)).map(({ oid }) => oid));
  const gone = (await readRows(target, oidSchema, allSql)).filter(({ oid }) => !kept.has(oid));
  for (const { oid } of gone) await target.query('select pg_catalog.lo_unlink($1::oid)', [oid]);
  return next.horizon;
}

/**
 * Hashes the length, and the pages without the zeros at their ends, because a missing page and a page of zeros read the
 * same.
 */
const hashSql = `
  select coalesce(pg_catalog.sum(pg_catalog.hashtextextended(
      p.number || ':' || pg_catalog.encode(p.data, 'hex'), 0)), 0)::text
    || ':' || (select coalesce(pg_catalog.max(l.pageno * ${pageBytes}::bigint + pg_catalog.length(l.data)), 0)
      from pg_catalog.pg_largeobject l where l.loid = $1) as hash
  from (select l.pageno as number, pg_catalog.rtrim(l.data, '\\x00') as data
    from pg_catalog.pg_largeobject l where l.loid = $1) p
  where p.data <> '' having exists (select from pg_catalog.pg_largeobject_metadata where oid = $1)`;

/** Returns a hash of a large object's content, or null if there is no such object. */
export async function hashLargeObject(client: pg.ClientBase, oid: number): Promise<string | null> {
  return (await readRows(client, z.object({ hash: z.string() }), hashSql, [oid]))[0]?.hash ?? null;
}

export const listLargeObjects = async (client: pg.ClientBase): Promise<number[]> =>
  (await readRows(client, oidSchema, `${allSql} order by oid`)).map(({ oid }) => oid);
