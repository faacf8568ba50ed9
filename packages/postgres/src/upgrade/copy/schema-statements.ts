import { z } from 'zod';
import { dumpBothSections } from '../../dump/dump-schema';
import { listTables } from '../../dump/list-tables';
import { type Statement, splitStatements } from '../../dump/split-statements';
import { addStatements, dropStatement, readChecks } from '../../load/deferred-checks';
import { schemasLast } from '../../load/statement.rules';
import { type OwnedStatement, readOwners, rolesOf } from '../../load/statement-owners';
import { readRows, type Stage } from '../session';
import { platformRole } from './own-objects';

/** One statement of a schema, and the role that makes it. */
export interface PlannedStatement {
  sql: string;
  /** Null for an extension that the superuser owns. */
  owner: string | null;
}

/**
 * A schema in the order in which it is made. Positions are the same each time that one dump is read, so that a run
 * after a crash knows what is made.
 */
export interface SchemaPlan {
  /** The schemas themselves, still empty. */
  schemas: PlannedStatement[];
  /** Extensions that belong to the platform. They are made before anything of the customer. */
  extensions: PlannedStatement[];
  /** Types, functions, tables, views. */
  pre: PlannedStatement[];
  /** Drops the CHECKs that call the customer's functions, until no more rows arrive. */
  dropChecks: PlannedStatement[];
  /** Attaches partitions to their tables. Postgres evaluates their CHECKs then, and may call the functions. */
  attach: PlannedStatement[];
  /** Unique keys and replica identities: replication needs them before the first row. */
  keys: PlannedStatement[];
  /** The other indexes, which may be built two at a time once the rows are there. */
  indexes: PlannedStatement[];
  /** Foreign keys, triggers, contents of materialised views, in pg_dump's order. */
  rest: PlannedStatement[];
  /**
   * Statements that would change or refuse rows that arrive by replication, and those by which owners gave up rights of
   * their own. They run when no more rows arrive.
   */
  late: PlannedStatement[];
}

const isLate = ({ outline }: Statement): boolean =>
  /^ALTER TABLE .* (?:(?<!NO )FORCE ROW LEVEL SECURITY|ENABLE (?:ALWAYS|REPLICA) (?:TRIGGER|RULE) )/i.test(outline);
/**
 * A CHECK that pg_dump makes after the rows because it is not validated, or the comment of any constraint made there.
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
  /** The owners of extensions, by the extension's name. */
  extensionOwners: ReadonlyMap<string, string>;
}

/**
 * Reads the schema of the old database, complete with owners and grants. No DDL may run meanwhile. Throws TransferError
 * `dump_failed`.
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
  // pg_dump makes CHECKs that are not validated after the rows, so they are late anyway.
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
  // An owner may have taken rights from itself that its own rows, indexes and foreign keys need.
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
  // An extension of the platform makes its own comment.
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
