import pg from 'pg';
import { z } from 'zod';
import { platformRole } from './own-objects';
import { readRows } from './session';

const name = pg.escapeIdentifier;
const text = pg.escapeLiteral;

const roleSchema = z.object({
  rolname: z.string(),
  /** `create role` options but the password, ready to be written. */
  options: z.string(),
  password: z.string().nullable(),
  until: z.string().nullable(),
});
const membershipSchema = z.object({ role: z.string(), member: z.string(), grantor: z.string(), options: z.string() });
const settingSchema = z.object({ role: z.string().nullable(), is_here: z.boolean(), key: z.string(), value: z.string() });

const rolesSql = `select rolname, rolpassword as password, concat_ws(' ',
    case when rolinherit then 'inherit' else 'noinherit' end, case when rolcreaterole then 'createrole' else 'nocreaterole' end,
    case when rolcreatedb then 'createdb' else 'nocreatedb' end, case when rolcanlogin then 'login' else 'nologin' end,
    case when rolbypassrls then 'bypassrls' else 'nobypassrls' end, 'connection limit ' || rolconnlimit) as options, rolvaliduntil::text as until
  from pg_catalog.pg_authid where rolname !~ '^pg_' and rolname <> $1 order by rolname`;

/** Memberships in the server's own roles (pg_read_all_data) are kept too; those that the server itself grants among its roles are not ours. */
const membershipsSql = `select g.rolname as role, m.rolname as member, o.rolname as grantor,
    concat_ws(', ', 'admin ' || a.admin_option, 'inherit ' || a.inherit_option, 'set ' || a.set_option) as options
  from pg_catalog.pg_auth_members a join pg_catalog.pg_roles g on g.oid = a.roleid join pg_catalog.pg_roles m on m.oid = a.member
  join pg_catalog.pg_roles o on o.oid = a.grantor where m.rolname !~ '^pg_' order by a.oid`;

const settingsSql = `select r.rolname as role, s.setdatabase <> 0 as is_here, split_part(kv, '=', 1) as key, substr(kv, strpos(kv, '=') + 1) as value
  from pg_catalog.pg_db_role_setting s left join pg_catalog.pg_roles r on r.oid = s.setrole cross join lateral unnest(s.setconfig) kv
  where (s.setdatabase = 0 or s.setdatabase = (select oid from pg_catalog.pg_database where datname = $1)) order by 1, 2, 3`;

/** Settings that hold a list take it as it is written; quoted, it would be one odd name. */
const listSettings = new Set(['search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries', 'datestyle']);

interface Roles {
  roles: z.infer<typeof roleSchema>[];
  memberships: z.infer<typeof membershipSchema>[];
  settings: z.infer<typeof settingSchema>[];
}

async function readRoles(client: pg.ClientBase, databaseName: string): Promise<Roles> {
  return {
    roles: await readRows(client, roleSchema, rolesSql, [platformRole]),
    memberships: await readRows(client, membershipSchema, membershipsSql),
    settings: await readRows(client, settingSchema, settingsSql, [databaseName]),
  };
}

function roleStatements(wanted: Roles['roles'], there: Roles['roles']): string[] {
  const existing = new Map(there.map((role) => [role.rolname, role]));
  return wanted.flatMap((role) => {
    const found = existing.get(role.rolname);
    if (found && found.options === role.options && found.password === role.password && found.until === role.until) return [];
    // Nothing takes an end away again; one that never comes means the same.
    const until = role.until === (found?.until ?? null) ? '' : ` valid until ${text(role.until ?? 'infinity')}`;
    const password = role.password === null ? 'password null' : `password ${text(role.password)}`;
    return [`${found ? 'alter' : 'create'} role ${name(role.rolname)} nosuperuser noreplication ${role.options} ${password}${until}`];
  });
}

const membershipKey = (entry: z.infer<typeof membershipSchema>): string => JSON.stringify(entry);

/** In the order in which they were granted, so that whoever granted one holds its right already. */
function membershipStatements(wanted: Roles['memberships'], there: Roles['memberships']): string[] {
  const [wantedKeys, thereKeys] = [new Set(wanted.map(membershipKey)), new Set(there.map(membershipKey))];
  const revoked = there.filter((entry) => !wantedKeys.has(membershipKey(entry))).reverse();
  const granted = wanted.filter((entry) => !thereKeys.has(membershipKey(entry)));
  return [
    ...revoked.map(({ role, member, grantor }) => `revoke ${name(role)} from ${name(member)} granted by ${name(grantor)} cascade`),
    ...granted.map(
      ({ role, member, grantor, options }) => `grant ${name(role)} to ${name(member)} with ${options} granted by ${name(grantor)}`,
    ),
  ];
}

function settingStatements(wanted: Roles['settings'], there: Roles['settings'], databaseName: string): string[] {
  const subject = ({ role, is_here }: z.infer<typeof settingSchema>): string => {
    const place = role === null ? `database ${name(databaseName)}` : `role ${name(role)}`;
    return role !== null && is_here ? `${place} in database ${name(databaseName)}` : place;
  };
  const keyOf = (entry: z.infer<typeof settingSchema>): string => `${subject(entry)} ${entry.key}`;
  const left = new Map(there.map((entry) => [keyOf(entry), entry]));
  const statements: string[] = [];
  for (const entry of wanted) {
    if (left.get(keyOf(entry))?.value !== entry.value) {
      const value = listSettings.has(entry.key.toLowerCase()) ? entry.value || "''" : text(entry.value);
      statements.push(`alter ${subject(entry)} set ${name(entry.key)} = ${value}`);
    }
    left.delete(keyOf(entry));
  }
  return [...statements, ...[...left.values()].map((entry) => `alter ${subject(entry)} reset ${name(entry.key)}`)];
}

/**
 * Roles with their SCRAM verifiers, memberships with their options, and settings, until both servers have the same: what differs is changed on the
 * target, roles that have gone are dropped. `databaseName` must exist on both. Returns how many statements it took; 0 when nothing differed.
 */
export async function syncRoles(old: pg.ClientBase, target: pg.ClientBase, databaseName: string): Promise<number> {
  const [wanted, there] = await Promise.all([readRoles(old, databaseName), readRoles(target, databaseName)]);
  const names = new Set(wanted.roles.map((role) => role.rolname));
  const gone = there.roles.filter((role) => !names.has(role.rolname));
  // A role that has gone takes its memberships along.
  const isKept = ({ role, member, grantor }: z.infer<typeof membershipSchema>): boolean =>
    gone.every(({ rolname }) => ![role, member, grantor].includes(rolname));
  const statements = [
    ...roleStatements(wanted.roles, there.roles),
    ...gone.map(({ rolname }) => `drop role ${name(rolname)}`),
    ...membershipStatements(wanted.memberships, there.memberships.filter(isKept)),
    ...settingStatements(
      wanted.settings,
      there.settings.filter((entry) => entry.role === null || names.has(entry.role)),
      databaseName,
    ),
  ];
  for (const statement of statements) await target.query(statement);
  return statements.length;
}
