import pg from 'pg';
import { z } from 'zod';
import { readText, type SectionReader, textBytesMax } from '../dump/dump-format';
import { type Statement, splitStatements } from '../dump/split-statements';
import { isDenied } from '../session/transfer-error';
import { checkStatement, describeStatement, publicOwnerOf } from './statement.rules';

const name = pg.escapeIdentifier;

/** A statement of pg_dump. `owner` is the role that runs it, or null if pg_dump names none. */
export interface OwnedStatement extends Statement {
  owner: string | null;
}

const isSetting = ({ outline }: Statement): boolean => /^(?:SET |SELECT pg_catalog\.set_config)/i.test(outline);
/** Removes leading comments, which the splitting leaves in a statement. */
const withoutComments = (text: string): string => text.replace(/^(?:--[^\n]*\n|\s)+/, '');
const plainSql = (text: string): string => withoutComments(text).trim().replace(/;$/, '');
const sessionForm =
  /^SET SESSION AUTHORIZATION (?:(DEFAULT)|'((?:[^']|'')*)'|"((?:[^"]|"")+)"|([a-z0-9_$\u0080-\uffff]+))$/i;
const resetForm = /^RESET SESSION AUTHORIZATION$/i;

/** Tells whether a statement only names an owner. {@link readOwners} reads such a statement, and it is never run. */
export const isOwnerChange = ({ text }: Pick<Statement, 'text'>): boolean => {
  const sql = plainSql(text);
  return sessionForm.test(sql) || resetForm.test(sql);
};

/**
 * Reads from SET SESSION AUTHORIZATION which role runs each statement. A name in single quotes is the owner of the
 * following objects of the dump. A name in another form is the grantor of the following grants, until RESET returns to
 * the object's owner.
 */
export function readOwners(statements: readonly Statement[]): OwnedStatement[] {
  let entryOwner: string | null = null;
  let grantor: string | null = null;
  const owned: OwnedStatement[] = [];
  for (const statement of statements) {
    const sql = plainSql(statement.text);
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

export interface SqlStatement extends OwnedStatement {
  object: string;
}

/** Reads and checks one section of the schema. With `saysOwners`, it also reads the role that creates each object. */
export async function readStatements(
  reader: SectionReader,
  path: string,
  saysOwners: boolean,
): Promise<SqlStatement[]> {
  const statements = splitStatements(await readText(await reader.expect(path), textBytesMax));
  const isRun = (statement: Statement): boolean => {
    if (saysOwners && (isOwnerChange(statement) || publicOwnerOf(statement) !== null)) return true;
    return checkStatement(statement) === 'run';
  };
  const run = statements.filter(isRun);
  const owned = saysOwners ? readOwners(run) : run.map((statement) => ({ ...statement, owner: null }));
  return owned.map(({ text, outline, owner }) => ({
    text: withoutComments(text),
    outline,
    owner,
    object: describeStatement(outline),
  }));
}

/**
 * Tells whether Postgres itself refused the statement for lack of a right. The customer's code could raise the same
 * error in order to be run again with more rights, but that error has a position in the code (`where`).
 */
export const isRefusedByPostgres = (error: unknown): error is Error =>
  isDenied(error) && !('where' in error && error.where !== undefined);

/**
 * Tells whether a statement's text alone shows that it runs no code of the customer. CREATE TABLE may run code if it
 * has a generated column or a partition bound, because Postgres computes constants in their expressions.
 */
const neverRunsCode = (outline: string): boolean => {
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
 * Selects true if attaching a partition runs no code of the customer. Attaching runs a domain's CHECKs for the values
 * of the bound. Attaching also computes the constants in an expression of the key and in the partition's CHECKs. `$1`
 * is the name of the table and `$2` the name of its partition. Both tables are empty.
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

/** Tells whether Postgres runs no code of the customer for a statement. `client` only reads the catalogue. */
export async function runsNoCode(client: pg.ClientBase, outline: string): Promise<boolean> {
  if (neverRunsCode(outline)) return true;
  const form = attachForm.exec(outline);
  if (form === null) return false;
  const [{ is_safe: isSafe }] = attachSchema.parse((await client.query(attachSql, [form[1], form[2]])).rows);
  return isSafe;
}

const isMemberSql = `select pg_catalog.pg_has_role($1::name, $2::name, 'member') as is_member,
    pg_catalog.pg_has_role($2::name, $1::name, 'member') as is_circle`;
const memberSchema = z.tuple([z.object({ is_member: z.boolean(), is_circle: z.boolean() })]);

/**
 * Gives an owner the rights of others while `work` runs, because an object of this owner may refer to another object,
 * which the owner may no longer use. `server` is a session of the superuser in the database `postgres`. A crash leaves
 * a membership, which `syncRoles` removes.
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
  /** The owner of the dumped database, or null if the dump does not name it. */
  dumpedOwner: string | null;
  owner: string;
  /** The roles that exist on the target. */
  existing: ReadonlySet<string>;
  /** Owners who set their own default privileges. */
  makers?: ReadonlySet<string>;
}

/** Returns the roles that a statement of pg_dump names, except PUBLIC. */
export function rolesOf(text: string): string[] {
  const inPolicy = policy.exec(text)?.[2]?.match(new RegExp(roleForm, 'g'));
  const inDefaults = defaults.exec(text);
  const found = inPolicy ?? (inDefaults ? [inDefaults[2] ?? '', inDefaults[4] ?? ''] : [granted.exec(text)?.[2] ?? '']);
  return found.filter((role) => role !== '' && role !== 'PUBLIC').map(read);
}

/**
 * Replaces the owner of the dumped database in a statement by the target's owner. Returns null if the statement only
 * concerns missing roles, because such a grant or policy has no effect.
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
    // A role's default privileges are set in a session of that role. A load has sessions only of `owner` and `makers`.
    if (maker === null || grantee === null || (maker !== quote(owner) && !makers.has(read(maker)))) return null;
    return `${inDefaults[1]}${maker}${inDefaults[3]}${grantee}${inDefaults[5] ?? ''}`;
  }
  const inGrant = granted.exec(text);
  if (!inGrant) return text;
  const grantee = translate(inGrant[2] ?? '');
  return grantee === null ? null : `${inGrant[1]}${grantee}${inGrant[3] ?? ''}`;
}
