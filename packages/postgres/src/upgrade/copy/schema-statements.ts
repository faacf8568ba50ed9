import { z } from 'zod';
import { dumpBothSections } from '../../dump/dump-schema';
import { listTables } from '../../dump/list-tables';
import { type Statement, splitStatements } from '../../dump/split-statements';
import { addStatements, dropStatement, readChecks } from '../../load/deferred-checks';
import { schemasLast } from '../../load/statement.rules';
import { type OwnedStatement, readOwners, rolesOf } from '../../load/statement-owners';
import { readRows, type Stage } from '../session';
import { platformRole } from './own-objects';

/** A statement of a schema with the role that runs it. */
export interface PlannedStatement {
  sql: string;
  /** The role, or null for an extension of the superuser. */
  owner: string | null;
}

/**
 * A schema in the order of its creation. The plan is stored on the target, so that a run after a crash can continue.
 */
export interface SchemaPlan {
  /** The schemas, still empty. */
  schemas: PlannedStatement[];
  /** Extensions of the platform. They come before all objects of the customer except schemas. */
  extensions: PlannedStatement[];
  /** Types, functions, tables and views. */
  pre: PlannedStatement[];
  /** Statements that drop the CHECKs that call the customer's functions. `late` adds these CHECKs again. */
  dropChecks: PlannedStatement[];
  /** Statements that attach partitions. They follow `dropChecks`, because Postgres evaluates a partition's CHECKs. */
  attach: PlannedStatement[];
  /** Unique keys and replica identities, which replication needs before the first row. */
  keys: PlannedStatement[];
  /** The other indexes. They may be built two at a time after the rows were copied. */
  indexes: PlannedStatement[];
  /** Foreign keys, triggers and contents of materialised views, in pg_dump's order. */
  rest: PlannedStatement[];
  /**
   * Statements that could change or refuse replicated rows, and those with which owners gave up their own rights. They
   * run after all rows have arrived.
   */
  late: PlannedStatement[];
}

const isLate = ({ outline }: Statement): boolean =>
  /^ALTER TABLE .* (?:(?<!NO )FORCE ROW LEVEL SECURITY|ENABLE (?:ALWAYS|REPLICA) (?:TRIGGER|RULE) )/i.test(outline);
/**
 * Tells whether a statement adds a CHECK that is not validated, or comments on a constraint. pg_dump writes both after
 * the rows.
 */
const isLateCheck = ({ outline }: Statement): boolean =>
  /^ALTER (?:TABLE|DOMAIN) .* ADD CONSTRAINT .* CHECK .* NOT VALID;?$/is.test(outline) ||
  /^COMMENT ON CONSTRAINT /i.test(outline);
const isAttach = ({ outline }: Statement): boolean => /^ALTER TABLE (?:ONLY )?.* ATTACH PARTITION /i.test(outline);
const isKey = ({ outline }: Statement): boolean =>
  /^ALTER TABLE .* (?:ADD CONSTRAINT .* (?:PRIMARY KEY|UNIQUE)\b|REPLICA IDENTITY )/i.test(outline) ||
  /^CREATE UNIQUE INDEX /i.test(outline);
const isIndex = ({ outline }: Statement): boolean => /^CREATE INDEX /i.test(outline);
const isSchema = ({ outline }: Statement): boolean => /^CREATE SCHEMA /i.test(outline);

/** Removes the comments that pg_dump writes before each statement. */
const withoutComments = (text: string): string =>
  text
    .replace(/^(?:--[^\n]*\n|\s)+/, '')
    .trim()
    .replace(/;$/, '');
const extensionForm = /^(?:CREATE EXTENSION IF NOT EXISTS|COMMENT ON EXTENSION) ("(?:[^"]|"")+"|[a-z0-9_]+) /;

const ownerSchema = z.object({ name: z.string(), owner: z.string() });
const extensionOwnersSql =
  'select extname as name, pg_catalog.pg_get_userbyid(extowner) as owner from pg_catalog.pg_extension';
const databaseOwnerSql = `select datname as name, pg_catalog.pg_get_userbyid(datdba) as owner
  from pg_catalog.pg_database
  where datname = pg_catalog.current_database()`;

export interface SchemaOwners {
  databaseOwner: string;
  /** The owners of extensions, by the extensions' names. */
  extensionOwners: ReadonlyMap<string, string>;
}

/**
 * Reads the old database's schema with owners and grants. The call can fail during concurrent DDL, so an upgrade
 * refuses DDL first. Throws TransferError `dump_failed` or `message_too_large`.
 */
export async function planSchema(stage: Stage): Promise<SchemaPlan> {
  const url = await stage.readerUrl('old');
  const { schema, guardSchema, digits } = stage.own;
  const request = {
    url,
    isComplete: true,
    isMadeByOwners: true,
    excludeSchemas: [schema, guardSchema],
    signal: stage.move.signal,
  };
  const reader = await stage.reader('old');
  const tables = (await listTables(reader)).length;
  const { pre, post } = await dumpBothSections({ ...request, tables });
  const [database] = await readRows(reader, ownerSchema, databaseOwnerSql);
  const extensions = await readRows(reader, ownerSchema, extensionOwnersSql);
  const owners = {
    databaseOwner: database?.owner ?? platformRole,
    extensionOwners: new Map(extensions.map(({ name, owner }) => [name, owner])),
  };
  const isOwn = ({ outline }: Statement): boolean => outline.includes(digits);
  const read = (sql: string): OwnedStatement[] =>
    readOwners(splitStatements(sql)).filter((statement) => !isOwn(statement));
  const plan = sortStatements(read(pre), read(post), owners);
  // A new database has the schema `public`. pg_dump does not tell that the owner of the old database has dropped it.
  if ((await reader.query("select from pg_catalog.pg_namespace where nspname = 'public'")).rowCount === 0)
    plan.schemas.unshift({ sql: 'drop schema public', owner: owners.databaseOwner });
  // pg_dump writes an unvalidated CHECK after the rows, so only validated CHECKs need a special order.
  const checks = (await readChecks(reader)).filter(({ validated }) => validated);
  return {
    ...plan,
    dropChecks: checks.map((check) => ({ sql: dropStatement(check), owner: check.role })),
    late: [
      ...checks
        .filter(({ is_local }) => is_local)
        .flatMap((check) => addStatements(check).map((sql) => ({ sql, owner: check.role }))),
      ...plan.late,
    ],
  };
}

export function sortStatements(
  pre: OwnedStatement[],
  post: OwnedStatement[],
  owners: SchemaOwners,
): Omit<SchemaPlan, 'dropChecks'> {
  const extensionOf = ({ text }: Statement): string | null => {
    const name = extensionForm.exec(withoutComments(text))?.[1];
    if (name === undefined) return null;
    return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
  };
  const isPlatforms = (statement: Statement): boolean => {
    const extension = extensionOf(statement);
    return extension !== null && (owners.extensionOwners.get(extension) ?? platformRole) === platformRole;
  };
  const ownerOf = (statement: OwnedStatement): string => {
    const extension = extensionOf(statement);
    if (extension !== null) return owners.extensionOwners.get(extension) ?? platformRole;
    return statement.owner === null || statement.owner === 'pg_database_owner' ? owners.databaseOwner : statement.owner;
  };
  const planned = (statements: OwnedStatement[]): PlannedStatement[] =>
    statements.map((statement) => ({ sql: statement.text, owner: ownerOf(statement) }));
  // A change of an owner's own rights runs late, because the owner's rows, indexes and foreign keys need these rights
  // during the copy.
  const isOwnRight = (statement: OwnedStatement): boolean =>
    /^(?:GRANT|REVOKE) /i.test(statement.outline) && rolesOf(withoutComments(statement.text))[0] === ownerOf(statement);
  const early = pre.filter(
    (statement) =>
      !isLate(statement) &&
      !isOwnRight(statement) &&
      !isSchema(statement) &&
      !isAttach(statement) &&
      !isPlatforms(statement),
  );
  const now = post.filter((statement) => !isLate(statement) && !isLateCheck(statement) && !isOwnRight(statement));
  // An extension of the platform sets its own comment, so only its CREATE is kept.
  const extensions = pre.filter((statement) => isPlatforms(statement) && /^CREATE /i.test(statement.outline));
  return {
    schemas: planned(pre.filter(isSchema)),
    extensions: extensions.map(({ text }) => ({ sql: text, owner: null })),
    pre: planned(early),
    attach: planned(pre.filter(isAttach)),
    keys: planned(now.filter(isKey)),
    indexes: planned(now.filter(isIndex)),
    rest: planned(now.filter((statement) => !isKey(statement) && !isIndex(statement))),
    late: planned([
      ...pre.filter(isLate),
      ...post.filter((statement) => isLate(statement) || isLateCheck(statement)),
      ...schemasLast([...pre, ...post].filter(isOwnRight)),
    ]),
  };
}
