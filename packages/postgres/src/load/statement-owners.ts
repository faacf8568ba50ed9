import pg from 'pg';
import { z } from 'zod';
import type { Statement } from '../dump/split-statements';

const name = pg.escapeIdentifier;

/** A statement of pg_dump, and who runs it. Null when pg_dump names nobody. */
export interface OwnedStatement extends Statement {
  owner: string | null;
}

const isSetting = ({ outline }: Statement): boolean => /^(?:SET |SELECT pg_catalog\.set_config)/i.test(outline);
const withoutComments = (text: string): string =>
  text
    .replace(/^(?:--[^\n]*\n|\s)+/, '')
    .trim()
    .replace(/;$/, '');
const sessionForm =
  /^SET SESSION AUTHORIZATION (?:(DEFAULT)|'((?:[^']|'')*)'|"((?:[^"]|"")+)"|([a-z0-9_$\u0080-\uffff]+))$/i;
const resetForm = /^RESET SESSION AUTHORIZATION$/i;

/** Names an owner and creates nothing: {@link readOwners} reads it, and it is never run. */
export const isOwnerChange = ({ text }: Pick<Statement, 'text'>): boolean => {
  const sql = withoutComments(text);
  return sessionForm.test(sql) || resetForm.test(sql);
};

/**
 * Reads from pg_dump's SET SESSION AUTHORIZATION who runs each statement. A name in single quotes holds for the entries
 * that follow. A plain name is a grantor inside an entry, and RESET goes back to the owner of the entry.
 */
export function readOwners(statements: readonly Statement[]): OwnedStatement[] {
  let entryOwner: string | null = null;
  let grantor: string | null = null;
  const owned: OwnedStatement[] = [];
  for (const statement of statements) {
    const sql = withoutComments(statement.text);
    const said = sessionForm.exec(sql);
    if (said) {
      const [, isDefault, literal, quoted, plain] = said;
      if (literal !== undefined || isDefault !== undefined) {
        entryOwner = literal?.replaceAll("''", "'") ?? null;
        grantor = null;
      } else grantor = quoted?.replaceAll('""', '"') ?? plain ?? null;
    } else if (resetForm.test(sql)) grantor = null;
    else if (!isSetting(statement)) owned.push({ ...statement, owner: grantor ?? entryOwner });
  }
  return owned;
}

/** Postgres refused for want of a right. */
export const isDenied = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && error.code === '42501';

/**
 * Whether the statement itself was refused. The customer's code may raise the same error to get more rights at the next
 * attempt, but then Postgres says where in that code it happened.
 */
export const isRefusedByPostgres = (error: unknown): error is Error =>
  isDenied(error) && !('where' in error && error.where !== undefined);

/**
 * Statements for which Postgres calls no code of the customer's: it computes constants in the columns and the bounds of
 * a table when it creates it. For statements that attach a partition, see {@link attachRunsNoCode}.
 */
export const runsNoCode = (outline: string): boolean => {
  if (/^CREATE (?:UNLOGGED )?TABLE /i.test(outline)) return !/ GENERATED ALWAYS AS \(| PARTITION /i.test(outline);
  if (/^ALTER (?:TABLE|DOMAIN) .* ADD CONSTRAINT .* NOT VALID$/is.test(outline)) return true;
  if (/^ALTER TABLE /i.test(outline)) return !/ ADD CONSTRAINT | VALIDATE | ATTACH PARTITION /i.test(outline);
  return /^(?:CREATE (?!(?:UNIQUE )?INDEX|AGGREGATE|EXTENSION)|ALTER (?!DOMAIN)|COMMENT ON |GRANT |REVOKE )/i.test(
    outline,
  );
};

const identifier = '(?:"(?:[^"]|"")+"|[^\\s(".]+)';
const attachForm = new RegExp(
  `^ALTER TABLE (?:ONLY )?(${identifier}\\.${identifier}) ATTACH PARTITION (${identifier}\\.${identifier}) `,
  'i',
);

/**
 * Attaching calls the CHECKs of a domain for the bound, and computes the key's constants and those in the partition's
 * CHECKs. `$1` and `$2` are the table and its partition, both empty.
 */
const attachSql = `with recursive named as (
    select c.oid, w.place from (values ($1::text, 'table'), ($2::text, 'partition')) w (name, place)
    cross join lateral pg_catalog.parse_ident(w.name) i (parts)
    join pg_catalog.pg_namespace n on n.nspname = i.parts[1] join pg_catalog.pg_class c on c.relnamespace = n.oid
      and c.relname = i.parts[2]),
  key as (select p.* from pg_catalog.pg_partitioned_table p join named on named.oid = p.partrelid and place = 'table'),
  type (oid) as (select a.atttypid from key join pg_catalog.pg_attribute a on a.attrelid = key.partrelid
    and a.attnum = any (key.partattrs)
    union select w.oid from type join pg_catalog.pg_type t on t.oid = type.oid
      left join pg_catalog.pg_attribute a on a.attrelid = t.typrelid and t.typrelid <> 0 and a.attnum > 0
      and not a.attisdropped
      left join pg_catalog.pg_range r on r.rngtypid = t.oid or r.rngmultitypid = t.oid
      cross join lateral (values (t.typelem), (a.atttypid), (r.rngsubtype)) w (oid) where w.oid <> 0)
  select (select count(*) = 2 from named) and exists (select from key where partexprs is null)
    and not exists (select from type join pg_catalog.pg_type t on t.oid = type.oid where t.typtype = 'd')
    and not exists (select from named cross join lateral (select named.oid union select relid
      from pg_catalog.pg_partition_tree(named.oid)) r (oid)
      join pg_catalog.pg_constraint k on k.conrelid = r.oid and k.contype = 'c' where place = 'partition') as is_safe`;
const attachSchema = z.tuple([z.object({ is_safe: z.boolean() })]);

/**
 * A statement that attaches a partition, for which Postgres calls no code of the customer's. `client` only reads the
 * catalogue.
 */
export async function attachRunsNoCode(client: pg.ClientBase, outline: string): Promise<boolean> {
  const form = attachForm.exec(outline);
  if (form === null) return false;
  const [{ is_safe: isSafe }] = attachSchema.parse((await client.query(attachSql, [form[1], form[2]])).rows);
  return isSafe;
}

const isMemberSql = `select pg_catalog.pg_has_role($1::name, $2::name, 'member') as is_member,
    pg_catalog.pg_has_role($2::name, $1::name, 'member') as is_circle`;
const memberSchema = z.tuple([z.object({ is_member: z.boolean(), is_circle: z.boolean() })]);

/**
 * Gives an owner the rights of others while `work` runs: an object may refer to one that its owner may no longer use.
 * `server` is the superuser in the database `postgres`. A crash leaves a membership, which the comparison of roles
 * removes.
 */
export async function lendRights(
  server: pg.ClientBase,
  owner: string,
  others: readonly string[],
  work: () => Promise<void>,
): Promise<void> {
  const lent: string[] = [];
  try {
    for (const other of others) {
      const [{ is_member: isMember, is_circle: isCircle }] = memberSchema.parse(
        (await server.query(isMemberSql, [owner, other])).rows,
      );
      if (isMember || isCircle) continue;
      await server.query(`grant ${name(other)} to ${name(owner)} with inherit true, set false`);
      lent.push(other);
    }
    await work();
  } finally {
    for (const other of lent) await server.query(`revoke ${name(other)} from ${name(owner)}`);
  }
}

const roleForm = String.raw`(?:"(?:[^"]|"")+"|[a-z_\u0080-\uffff][a-z0-9_$\u0080-\uffff]*)`;
const granted = new RegExp(
  String.raw`^((?:GRANT|REVOKE) [\s\S]* (?:TO|FROM) )(${roleForm}|PUBLIC)( WITH GRANT OPTION)?$`,
);
const defaults = new RegExp(
  `^(ALTER DEFAULT PRIVILEGES FOR ROLE )(${roleForm})` +
    String.raw`( [\s\S]* (?:TO|FROM) )(${roleForm}|PUBLIC)( WITH GRANT OPTION)?$`,
);
const policy = new RegExp(
  String.raw`^(CREATE POLICY ${roleForm} ON (?:ONLY )?${roleForm}(?:\.${roleForm})?` +
    '(?: AS [A-Z]+)?(?: FOR [A-Z]+)? TO )' +
    `((?:${roleForm}|PUBLIC)(?:, (?:${roleForm}|PUBLIC))*)` +
    String.raw`((?: USING | WITH CHECK )[\s\S]*)?$`,
);

const read = (quoted: string): string => (quoted.startsWith('"') ? quoted.slice(1, -1).replaceAll('""', '"') : quoted);
const quote = (role: string): string => `"${role.replaceAll('"', '""')}"`;

export interface RoleNames {
  /** The owner of the database that was dumped, or null when the dump does not say. */
  dumpedOwner: string | null;
  owner: string;
  /** The roles that exist on the target. */
  existing: ReadonlySet<string>;
  /** Other owners, who set their own defaults. */
  makers?: ReadonlySet<string>;
}

/** Every role that a statement of pg_dump names, except PUBLIC. */
export function rolesOf(text: string): string[] {
  const inPolicy = policy.exec(text)?.[2]?.match(new RegExp(roleForm, 'g'));
  const inDefaults = defaults.exec(text);
  const found = inPolicy ?? (inDefaults ? [inDefaults[2] ?? '', inDefaults[4] ?? ''] : [granted.exec(text)?.[2] ?? '']);
  return found.filter((role) => role !== '' && role !== 'PUBLIC').map(read);
}

/**
 * The statement, with the dumped database's owner replaced by that of the target. Null when it concerns only roles that
 * the target does not have: such a grant gives nothing to anybody, and such a policy applies to nobody.
 */
export function withRolesOf(
  text: string,
  { dumpedOwner, owner, existing, makers = new Set() }: RoleNames,
): string | null {
  const translate = (role: string): string | null => {
    if (role === 'PUBLIC') return role;
    const translated = read(role) === dumpedOwner ? owner : read(role);
    return existing.has(translated) || translated === owner ? quote(translated) : null;
  };
  const inPolicy = policy.exec(text);
  if (inPolicy) {
    const roles = (inPolicy[2] ?? '').match(new RegExp(`${roleForm}|PUBLIC`, 'g')) ?? [];
    const known = roles.map(translate).filter((role) => role !== null);
    return known.length === 0 ? null : `${inPolicy[1]}${known.join(', ')}${inPolicy[3] ?? ''}`;
  }
  const inDefaults = defaults.exec(text);
  if (inDefaults) {
    const [maker, grantee] = [translate(inDefaults[2] ?? ''), translate(inDefaults[4] ?? '')];
    // Default privileges of a role may be set only by the role itself.
    if (maker === null || grantee === null || (maker !== quote(owner) && !makers.has(read(maker)))) return null;
    return `${inDefaults[1]}${maker}${inDefaults[3]}${grantee}${inDefaults[5] ?? ''}`;
  }
  const inGrant = granted.exec(text);
  if (!inGrant) return text;
  const grantee = translate(inGrant[2] ?? '');
  return grantee === null ? null : `${inGrant[1]}${grantee}${inGrant[3] ?? ''}`;
}
