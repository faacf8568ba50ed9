import { z } from 'zod';
import { isOwnRoleSql, platformRole } from '../copy/own-objects';
import { readRows, type Stage } from '../session';
import { UpgradeError } from '../upgrade-error';

const foundSchema = z.object({ what: z.string(), name: z.string() });

/**
 * No role of a customer may be a superuser or replicate, none may set what only a superuser sets, and only the
 * platform's roles may bypass row security.
 */
const rolesSql = `select 'role' as what, r.rolname as name from pg_catalog.pg_roles r
    where r.rolname <> '${platformRole}' and r.rolname !~ '^pg_' and (r.rolsuper or (r.rolreplication and not ${isOwnRoleSql}))
  union all select 'parameter', p.parname from pg_catalog.pg_parameter_acl p cross join lateral pg_catalog.aclexplode(p.paracl) a
    left join pg_catalog.pg_roles r on r.oid = a.grantee where a.grantee = 0 or not (${isOwnRoleSql}) and not r.rolsuper`;

/**
 * Objects that only a superuser can have made: code that runs with the superuser's rights, or without any limits of the
 * database. Members of extensions belong to the extension. An aggregate has no code of its own, and Postgres makes the
 * constructors of a range type with the type; both are in the language `internal`.
 */
const objectsSql = `select 'event trigger' as what, evtname as name from pg_catalog.pg_event_trigger
  union all select 'function', p.oid::regprocedure::text from pg_catalog.pg_proc p join pg_catalog.pg_roles r on r.oid = p.proowner
    join pg_catalog.pg_language l on l.oid = p.prolang
    where p.oid >= 16384 and (p.prosecdef and (r.rolsuper or r.rolname ~ '^pg_') or p.proleakproof
        or not l.lanpltrusted and l.lanname <> 'sql' and p.prokind <> 'a')
      and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
        and d.refclassid = 'pg_catalog.pg_extension'::regclass)
      and not (l.lanname = 'internal' and exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid
        and d.deptype = 'i' and d.refclassid = 'pg_catalog.pg_type'::regclass))
  union all select 'extension member', pg_catalog.pg_describe_object(d.classid, d.objid, 0) from pg_catalog.pg_depend d
    join pg_catalog.pg_proc p on d.classid = 'pg_catalog.pg_proc'::regclass and p.oid = d.objid join pg_catalog.pg_roles r on r.oid = p.proowner
    where d.deptype = 'e' and d.objid >= 16384 and p.prosecdef and r.rolsuper and p.prolang <> (select oid from pg_catalog.pg_language where lanname = 'c')`;

/**
 * Checks the target for a right that nobody should have. Roles, memberships and settings were compared with the old
 * server's before. Throws `rights_differ`.
 */
export async function checkRights(stage: Stage): Promise<void> {
  const server = await stage.server('target');
  const reader = await stage.reader('target');
  const [roles, objects] = await Promise.all([
    readRows(server, foundSchema, rolesSql),
    readRows(reader, foundSchema, objectsSql),
  ]);
  const found = [...roles, ...objects];
  if (found.length === 0) return;
  const names = found.slice(0, 10).map(({ what, name }) => `${what} ${name}`);
  throw new UpgradeError('rights_differ', `the new instance has what no customer can have made: ${names.join(', ')}`, {
    object: names[0],
  });
}
