import pg from 'pg';
import { z } from 'zod';
import { decidesValues } from '../../dump/database-properties';
import { runStatement } from '../../session/session';
import { setRolePassword } from '../../session/transfer-roles';
import { readRows } from '../session';
import { isOwnRoleSql } from './own-objects';

const name = pg.escapeIdentifier;
const text = pg.escapeLiteral;

const roleSchema = z.object({
  rolname: z.string(),
  /** Options of CREATE ROLE without the password, as SQL. */
  options: z.string(),
  password: z.string().nullable(),
  until: z.string().nullable(),
  comment: z.string().nullable(),
});
const membershipSchema = z.object({ role: z.string(), member: z.string(), grantor: z.string(), options: z.string() });
const settingSchema = z.object({
  role: z.string().nullable(),
  is_here: z.boolean(),
  key: z.string(),
  value: z.string(),
});

const rolesSql = `select rolname, rolpassword as password, concat_ws(' ',
    case when rolinherit then 'inherit' else 'noinherit' end,
      case when rolcreaterole then 'createrole' else 'nocreaterole' end,
    case when rolcreatedb then 'createdb' else 'nocreatedb' end, case when rolcanlogin then 'login' else 'nologin' end,
    case when rolbypassrls then 'bypassrls' else 'nobypassrls' end, 'connection limit ' || rolconnlimit) as options,
      rolvaliduntil::text as until,
    pg_catalog.shobj_description(r.oid, 'pg_authid') as comment
  from pg_catalog.pg_authid r where rolname !~ '^pg_' and not ${isOwnRoleSql} order by rolname`;

/**
 * Selects memberships. A membership in one of Postgres' own roles, such as pg_read_all_data, is included, but not a
 * membership between two of them.
 */
const membershipsSql = `select g.rolname as role, m.rolname as member, o.rolname as grantor,
    concat_ws(', ', 'admin ' || a.admin_option, 'inherit ' || a.inherit_option, 'set ' || a.set_option) as options
  from pg_catalog.pg_auth_members a join pg_catalog.pg_roles g on g.oid = a.roleid
  join pg_catalog.pg_roles m on m.oid = a.member
  join pg_catalog.pg_roles o on o.oid = a.grantor where m.rolname !~ '^pg_'
    and not exists (select from pg_catalog.pg_roles r where r.oid in (a.roleid, a.member) and ${isOwnRoleSql})
    order by a.oid`;

/**
 * Selects the customer's settings. Settings for all roles in all databases are left out: only the platform can make
 * them, and they concern this server alone, such as the read-only default of a full database.
 */
const settingsSql = `select r.rolname as role, s.setdatabase <> 0 as is_here, split_part(kv, '=', 1) as key,
    substr(kv, strpos(kv, '=') + 1) as value
  from pg_catalog.pg_db_role_setting s left join pg_catalog.pg_roles r on r.oid = s.setrole
  cross join lateral unnest(s.setconfig) kv
  where (s.setdatabase = 0 or s.setdatabase = (select oid from pg_catalog.pg_database where datname = $1))
    and (s.setdatabase <> 0 or s.setrole <> 0) and (r.oid is null or not ${isOwnRoleSql}) order by 1, 2, 3`;

/** Settings that are lists of names. Quoted as a whole, a list would be a single name. */
const listSettings = new Set([
  'search_path',
  'temp_tablespaces',
  'local_preload_libraries',
  'session_preload_libraries',
  'shared_preload_libraries',
  'unix_socket_directories',
]);

/** Returns SQL for the stored value of a list setting, with each name quoted by itself. */
export function quoteList(value: string): string {
  const elements = [...value.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,"]+?))\s*(?:,|$)/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
  );
  return elements.length === 0 ? "''" : elements.map(text).join(', ');
}

interface Roles {
  roles: z.infer<typeof roleSchema>[];
  memberships: z.infer<typeof membershipSchema>[];
  settings: z.infer<typeof settingSchema>[];
}

async function readRoles(client: pg.ClientBase, databaseName: string): Promise<Roles> {
  return {
    roles: await readRows(client, roleSchema, rolesSql),
    memberships: await readRows(client, membershipSchema, membershipsSql),
    settings: await readRows(client, settingSchema, settingsSql, [databaseName]),
  };
}

/** A statement, or a change of a password, which must not be in the text of a statement. */
interface Step {
  sql: string;
  password?: { verb: 'create' | 'alter'; role: string; options: string; password: string };
}

function roleSteps(wanted: Roles['roles'], there: Roles['roles']): Step[] {
  const existing = new Map(there.map((role) => [role.rolname, role]));
  return wanted.flatMap((role) => {
    const found = existing.get(role.rolname);
    if (found && found.options === role.options && found.password === role.password && found.until === role.until)
      return [];
    // An expiry cannot be removed, but `infinity` has the same effect.
    const until = role.until === (found?.until ?? null) ? '' : ` valid until ${text(role.until ?? 'infinity')}`;
    const verb = found ? 'alter' : 'create';
    const options = `nosuperuser noreplication ${role.options}${until}`;
    if (role.password === null) return [{ sql: `${verb} role ${name(role.rolname)} ${options} password null` }];
    return [{ sql: '', password: { verb, role: role.rolname, options, password: role.password } }];
  });
}

function commentStatements(wanted: Roles['roles'], there: Roles['roles']): string[] {
  const existing = new Map(there.map(({ rolname, comment }) => [rolname, comment]));
  return wanted
    .filter(({ rolname, comment }) => comment !== (existing.get(rolname) ?? null))
    .map(({ rolname, comment }) => `comment on role ${name(rolname)} is ${comment === null ? 'null' : text(comment)}`);
}

const membershipKey = (entry: z.infer<typeof membershipSchema>): string => JSON.stringify(entry);

/**
 * Returns statements that change memberships. They grant in the original order, so that each grantor already has the
 * right to grant.
 */
function membershipStatements(wanted: Roles['memberships'], there: Roles['memberships']): string[] {
  const [wantedKeys, thereKeys] = [new Set(wanted.map(membershipKey)), new Set(there.map(membershipKey))];
  const revoked = there.filter((entry) => !wantedKeys.has(membershipKey(entry))).reverse();
  const granted = wanted.filter((entry) => !thereKeys.has(membershipKey(entry)));
  return [
    ...revoked.map(
      ({ role, member, grantor }) => `revoke ${name(role)} from ${name(member)} granted by ${name(grantor)} cascade`,
    ),
    ...granted.map(
      ({ role, member, grantor, options }) =>
        `grant ${name(role)} to ${name(member)} with ${options} granted by ${name(grantor)}`,
    ),
  ];
}

type Setting = z.infer<typeof settingSchema>;

function subjectOf({ role, is_here }: Setting, databaseName: string): string {
  const place = role === null ? `database ${name(databaseName)}` : `role ${name(role)}`;
  return role !== null && is_here ? `${place} in database ${name(databaseName)}` : place;
}

function setStatement(entry: Setting, databaseName: string): string {
  const value = listSettings.has(entry.key.toLowerCase()) ? quoteList(entry.value) : text(entry.value);
  return `alter ${subjectOf(entry, databaseName)} set ${name(entry.key)} = ${value}`;
}

function settingStatements(wanted: readonly Setting[], there: readonly Setting[], databaseName: string): string[] {
  const keyOf = (entry: Setting): string => `${subjectOf(entry, databaseName)} ${entry.key}`;
  const left = new Map(there.map((entry) => [keyOf(entry), entry]));
  const statements: string[] = [];
  for (const entry of wanted) {
    if (left.get(keyOf(entry))?.value !== entry.value) statements.push(setStatement(entry, databaseName));
    left.delete(keyOf(entry));
  }
  return [
    ...statements,
    ...[...left.values()].map((entry) => `alter ${subjectOf(entry, databaseName)} reset ${name(entry.key)}`),
  ];
}

/** Returns the statements that set the database's settings for all roles. */
export async function databaseSettingStatements(client: pg.ClientBase, databaseName: string): Promise<string[]> {
  const settings = await readRows(client, settingSchema, settingsSql, [databaseName]);
  return settings.filter(({ role }) => role === null).map((entry) => setStatement(entry, databaseName));
}

interface SyncOptions {
  /**
   * False for no memberships on the target. Owners can then be lent each other's rights: a lent right is a membership
   * too, and Postgres refuses cyclic memberships. Default: true.
   */
  withMemberships?: boolean;
  /**
   * True to drop roles that are missing on the old server. Otherwise they stay without login, attributes and
   * memberships, because policies of a restored backup may name them. Default: true.
   */
  dropsGone?: boolean;
  /**
   * True to copy those settings of the whole database that {@link decidesValues} selects. The others would apply to the
   * subscriber, so they are set when customers are let in. False for a restored database, which takes its settings from
   * its backup. Default: true.
   */
  withDatabase?: boolean;
}

/**
 * Makes the target's roles equal to the old server's: verifiers, comments, memberships and settings. `databaseName`
 * must exist on both servers. Returns the number of statements.
 */
export async function syncRoles(
  old: pg.ClientBase,
  target: pg.ClientBase,
  databaseName: string,
  { withMemberships = true, dropsGone = true, withDatabase = true }: SyncOptions = {},
): Promise<number> {
  const [wanted, there] = await Promise.all([readRoles(old, databaseName), readRoles(target, databaseName)]);
  const names = new Set(wanted.roles.map((role) => role.rolname));
  const gone = there.roles.filter((role) => !names.has(role.rolname));
  // Dropping a role also drops its memberships.
  const isKept = ({ role, member, grantor }: z.infer<typeof membershipSchema>): boolean =>
    !dropsGone || gone.every(({ rolname }) => ![role, member, grantor].includes(rolname));
  const isSynced = ({ role, key }: Setting): boolean =>
    role === null ? withDatabase && decidesValues(key) : names.has(role);
  const plain = [
    ...gone.map(({ rolname }) =>
      dropsGone
        ? `drop role ${name(rolname)}`
        : `alter role ${name(rolname)} nosuperuser nocreatedb nocreaterole noreplication nobypassrls nologin password
            null`,
    ),
    ...commentStatements(wanted.roles, there.roles),
    ...membershipStatements(withMemberships ? wanted.memberships : [], there.memberships.filter(isKept)),
    ...settingStatements(wanted.settings.filter(isSynced), there.settings.filter(isSynced), databaseName),
  ];
  const steps = [...roleSteps(wanted.roles, there.roles), ...plain.map((sql): Step => ({ sql }))];
  for (const { sql, password } of steps)
    await (password === undefined ? runStatement(target, sql) : setRolePassword(target, password));
  return steps.length;
}
