import pg from 'pg';
import { z } from 'zod';
import { transferRolePattern } from '../session/transfer-roles';
import { pathList } from './customer-path';

const name = pg.escapeIdentifier;
const role = z.string().min(1).max(252);
/** A granted privilege. The grantee null stands for PUBLIC. */
export const grantSchema = z.strictObject({
  grantee: role.nullable(),
  privilege: z.string().regex(/^[A-Z ]+$/),
  grantable: z.boolean(),
});
export type Grant = z.infer<typeof grantSchema>;

/**
 * A setting without effect, which only a superuser can store. It marks the owner of a database whose disk is full. The
 * platform has made the sessions of this owner read-only by default.
 */
export const diskFullMark = 'drydock.is_disk_full';

/** A setting of the database, or of its owner in the database. */
const settingSchema = z.strictObject({ is_owners: z.boolean(), key: z.string(), value: z.string() });
type Setting = z.infer<typeof settingSchema>;

/**
 * Leaves out the settings of the platform: {@link diskFullMark}, and the read-only default of an owner with that mark.
 * A load could restore only the default, because it acts as the owner, who may not store the mark. Without the mark,
 * the platform would never end the default. Dumps of earlier versions contain both settings.
 */
function withoutPlatforms(settings: Setting[]): Setting[] {
  const isMarked = settings.some((setting) => setting.is_owners && setting.key === diskFullMark);
  const isLimit = ({ is_owners: isOwners, key, value }: Setting): boolean =>
    isMarked && isOwners && key === 'default_transaction_read_only' && value === 'on';
  return settings.filter((setting) => !setting.key.startsWith('drydock.') && !isLimit(setting));
}

/**
 * Properties that pg_dump does not write with the arguments of dump-schema.ts: those of the database, and the owners,
 * comments and grants of large objects.
 */
export const propertiesSchema = z.strictObject({
  owner: role,
  comment: z.string().nullable(),
  /** The default search path of the owner's sessions. Functions rely on it. */
  search_path: z.string(),
  /** Whether the schema `public`, which a new database has, still exists. Its owner may drop it. */
  has_public: z.boolean(),
  grants: z.array(grantSchema),
  settings: z.array(settingSchema).transform(withoutPlatforms),
  large_objects: z.array(
    z.strictObject({
      oid: z.int(),
      /** Absent if the object belongs to the database's owner, and in dumps without owners. */
      owner: role.optional(),
      comment: z.string().nullable(),
      grants: z.array(grantSchema).nullable(),
    }),
  ),
});
export type DatabaseProperties = z.infer<typeof propertiesSchema>;

const grantsOf = (acl: string): string => `(select pg_catalog.json_agg(pg_catalog.json_build_object(
  'grantee', case when a.grantee = 0 then null else pg_catalog.pg_get_userbyid(a.grantee) end, 'privilege',
    a.privilege_type, 'grantable', a.is_grantable))
  from pg_catalog.aclexplode(${acl}) a)`;

const propertiesSql = `select pg_catalog.pg_get_userbyid(d.datdba) as owner,
    pg_catalog.shobj_description(d.oid, 'pg_database') as comment,
    exists (select from pg_catalog.pg_namespace where nspname = 'public') as has_public,
      coalesce(${grantsOf('d.datacl')}, '[]') as grants,
    (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('is_owners', s.setrole <> 0, 'key',
      pg_catalog.split_part(kv, '=', 1),
        'value', pg_catalog.substr(kv, pg_catalog.strpos(kv, '=') + 1)) order by s.setrole, u.place), '[]')
      from pg_catalog.pg_db_role_setting s cross join lateral pg_catalog.unnest(s.setconfig) with ordinality u (kv,
        place) where s.setdatabase = d.oid and s.setrole in (0, d.datdba)) as settings,
    (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('oid', m.oid::bigint, 'owner',
      pg_catalog.pg_get_userbyid(m.lomowner), 'comment', pg_catalog.obj_description(m.oid, 'pg_largeobject'),
        'grants', ${grantsOf('m.lomacl')}) order by m.oid), '[]')
      from pg_catalog.pg_largeobject_metadata m where m.lomacl is not null or m.lomowner <> d.datdba
        or pg_catalog.obj_description(m.oid, 'pg_largeobject') is not null) as large_objects,
    coalesce((select pg_catalog.substr(kv, 13) from pg_catalog.pg_db_role_setting s
      cross join lateral pg_catalog.unnest(s.setconfig) kv
      where kv ~ '^search_path=' and s.setdatabase in (0, d.oid) and s.setrole in (0, d.datdba)
        order by s.setdatabase <> 0 and s.setrole <> 0 desc, s.setrole <> 0 desc limit 1),
      '"$user", public') as search_path
  from pg_catalog.pg_database d where d.datname = pg_catalog.current_database()`;

export async function readProperties(client: pg.ClientBase, withOwners = false): Promise<DatabaseProperties> {
  const properties = propertiesSchema.parse((await client.query(propertiesSql)).rows[0]);
  const isCustomers = ({ grantee }: { grantee: string | null }): boolean =>
    grantee === null || !transferRolePattern.test(grantee);
  const objects = properties.large_objects.map(({ owner, ...object }) =>
    withOwners && owner !== properties.owner ? { ...object, owner } : object,
  );
  return { ...properties, grants: properties.grants.filter(isCustomers), large_objects: objects };
}

/**
 * Tells whether a setting can influence values that functions compute. The text search configuration can, and so can
 * custom settings and those of extensions, which have a point in their name. Such a setting must apply before the first
 * row is loaded. `datestyle` does not count: before the rows, it would change how the dump's text is read.
 */
export const decidesValues = (key: string): boolean => key.includes('.') || key === 'default_text_search_config';

/** Settings whose value is a list of names, each of which must be quoted by itself. */
const listSettings = new Set([
  'search_path',
  'temp_tablespaces',
  'local_preload_libraries',
  'session_preload_libraries',
]);

export interface Target {
  database: string;
  owner: string;
  existing: ReadonlySet<string>;
  /** Returns the role that gets the objects of an owner in the dump, or null for the database's owner. */
  ownerOf?: (dumped: string | null) => string | null;
}

interface PropertyStatement {
  text: string;
  /** The object that the statement changes. */
  object: string;
  /** The role that runs the statement. Null or absent means the database's owner. */
  owner?: string | null;
}

function grantStatements(
  kind: string,
  grants: DatabaseProperties['grants'],
  { owner, dumpedOwner, existing }: Target & { dumpedOwner: string },
): PropertyStatement[] {
  return grants.flatMap(({ grantee, privilege, grantable }) => {
    const to = grantee === dumpedOwner ? owner : grantee;
    if (to !== null && to !== owner && !existing.has(to)) return [];
    const option = grantable && to !== owner ? ' with grant option' : '';
    return [{ object: kind, text: `grant ${privilege} on ${kind} to ${to === null ? 'public' : name(to)}${option}` }];
  });
}

export function propertyStatements(properties: DatabaseProperties, target: Target): PropertyStatement[] {
  const { database, owner } = target;
  const roles = { ...target, dumpedOwner: properties.owner };
  const here = `database ${name(database)}`;
  const comments =
    properties.comment === null
      ? []
      : [{ object: here, text: `comment on ${here} is ${pg.escapeLiteral(properties.comment)}` }];
  const objects = properties.large_objects.flatMap(
    ({ oid, owner: dumpedOwner = properties.owner, comment, grants }) => {
      const object = `large object ${oid}`;
      const runs = target.ownerOf?.(dumpedOwner) ?? null;
      const holder = runs ?? owner;
      const said = comment === null ? [] : [{ object, text: `comment on ${object} is ${pg.escapeLiteral(comment)}` }];
      const given =
        grants === null
          ? []
          : [
              { object, text: `revoke all on ${object} from ${name(holder)}` },
              ...grantStatements(object, grants, { ...target, owner: holder, dumpedOwner }),
            ];
      return [...said, ...given].map((statement) => ({ ...statement, owner: runs }));
    },
  );
  const settings = properties.settings.map(({ is_owners: isOwners, key, value }) => {
    const subject = isOwners ? `role ${name(owner)} in ${here}` : here;
    const literal = listSettings.has(key.toLowerCase()) ? pathList(value) : pg.escapeLiteral(value);
    return {
      object: `setting ${key} of the database`,
      text: `alter ${subject} set ${key.split('.').map(name).join('.')} = ${literal}`,
    };
  });
  return [...comments, ...grantStatements(here, properties.grants, roles), ...objects, ...settings];
}

export const rolesOfProperties = ({ grants, large_objects: objects }: DatabaseProperties): string[] =>
  [...grants, ...objects.flatMap((object) => object.grants ?? [])]
    .map(({ grantee }) => grantee)
    .filter((grantee) => grantee !== null);
