import pg from 'pg';
import { z } from 'zod';
import { readRows } from './session';

const partBytes = 1024 * 1024;
const objectSchema = z.object({ oid: z.number(), owner: z.string(), grants: z.array(z.string()), comment: z.string().nullable() });
const oidSchema = z.object({ oid: z.number() });
const partSchema = z.object({ part: z.instanceof(Buffer) });
const horizonSchema = z.object({ horizon: z.string() });

/** What was written by a transaction at or after the horizon, by its contents, its owner or its grants. Ages, since numbers of transactions wrap around. */
const changedSql = `select m.oid, pg_catalog.pg_get_userbyid(m.lomowner) as owner, pg_catalog.obj_description(m.oid, 'pg_largeobject') as comment,
    coalesce((select pg_catalog.json_agg(pg_catalog.format('grant %s on large object %s to %s%s', a.privilege_type, m.oid,
      case when a.grantee = 0 then 'public' else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) end,
      case when a.is_grantable then ' with grant option' else '' end)) from pg_catalog.aclexplode(m.lomacl) a), '[]') as grants
  from pg_catalog.pg_largeobject_metadata m
  where $1::xid is null or pg_catalog.age(m.xmin) <= pg_catalog.age($1::xid)
    or m.oid in (select l.loid from pg_catalog.pg_largeobject l where pg_catalog.age(l.xmin) <= pg_catalog.age($1::xid)) order by m.oid`;
const horizonSql = 'select pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::xid::text as horizon';
const allSql = 'select oid from pg_catalog.pg_largeobject_metadata';

async function copyObject(old: pg.ClientBase, target: pg.ClientBase, object: z.infer<typeof objectSchema>): Promise<void> {
  const { oid, owner, grants, comment } = object;
  await target.query(`begin; select pg_catalog.lo_unlink(oid) from pg_catalog.pg_largeobject_metadata where oid = ${oid}`);
  await target.query('select pg_catalog.lo_create($1::oid)', [oid]);
  for (let offset = 0; ; offset += partBytes) {
    const [read] = await readRows(old, partSchema, 'select pg_catalog.lo_get($1::oid, $2::bigint, $3::int) as part', [
      oid,
      offset,
      partBytes,
    ]);
    const part = read?.part ?? Buffer.alloc(0);
    if (part.length > 0) await target.query('select pg_catalog.lo_put($1::oid, $2::bigint, $3::bytea)', [oid, offset, part]);
    if (part.length < partBytes) break;
  }
  const described = comment === null ? [] : [`comment on large object ${oid} is ${pg.escapeLiteral(comment)}`];
  await target.query([`alter large object ${oid} owner to ${pg.escapeIdentifier(owner)}`, ...grants, ...described, 'commit'].join('; '));
}

/**
 * Copies the large objects that were written since `horizon` (all for null), with owners and grants, under their numbers, and removes those that have gone.
 * Returns the horizon for the next time: replication carries no large objects.
 */
export async function copyLargeObjects(old: pg.ClientBase, target: pg.ClientBase, horizon: string | null): Promise<string> {
  const [next] = await readRows(old, horizonSchema, horizonSql);
  if (next === undefined) throw new Error('no snapshot');
  for (const object of await readRows(old, objectSchema, changedSql, [horizon])) await copyObject(old, target, object);
  const kept = new Set((await readRows(old, oidSchema, allSql)).map(({ oid }) => oid));
  const gone = (await readRows(target, oidSchema, allSql)).filter(({ oid }) => !kept.has(oid));
  for (const { oid } of gone) await target.query('select pg_catalog.lo_unlink($1::oid)', [oid]);
  return next.horizon;
}

const hashSql = `select pg_catalog.md5(pg_catalog.lo_get(oid)) as hash from pg_catalog.pg_largeobject_metadata where oid = $1`;

/** Of one object up to 1 GB; null when it is not there. */
export async function hashLargeObject(client: pg.ClientBase, oid: number): Promise<string | null> {
  return (await readRows(client, z.object({ hash: z.string() }), hashSql, [oid]))[0]?.hash ?? null;
}

export const listLargeObjects = async (client: pg.ClientBase): Promise<number[]> =>
  (await readRows(client, oidSchema, `${allSql} order by oid`)).map(({ oid }) => oid);
