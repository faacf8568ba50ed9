import { holdTable } from '../dump/dump-database';
import { listAccounts } from '../dump/list-accounts';
import { beginReading } from '../dump/list-content';
import type { DumpedGrant } from '../dump/manifest';
import { dropAccount, listSchemas, makeReader, openAdmin } from '../dump/transfer-account';
import { tellRights } from '../load/load-accounts';
import { quoteName, Session } from '../session/session';
import type { Side } from './replication';

const flavour = 'mariadb';

export interface Comparison {
  outcome: 'equal' | 'different' | 'undecided';
  tables: number;
  names: string[];
}

/** A digest of each definition, by kind and name. Every version gives the same digest for the same definition. */
type Objects = ReadonlyMap<string, string>;

/**
 * A snapshot of a server, read by an account that cannot change rows. The snapshot of the new server is taken at the
 * switch and compared later, while customers write. Rows are compared by one sum for each table, which the table's own
 * server computes.
 */
export class Moment {
  private readonly admin: Session;
  private readonly reader: Session;
  private readonly user: string;
  private readonly side: Side;
  objects: Objects = new Map();

  private constructor(admin: Session, reader: Session, user: string, side: Side) {
    this.admin = admin;
    this.reader = reader;
    this.user = user;
    this.side = side;
  }

  static async open(side: Side): Promise<Moment> {
    const { admin: login } = side;
    const admin = await openAdmin(login, flavour);
    try {
      const schemas = (await listSchemas(admin)).map(({ name }) => name);
      const account = await makeReader(admin, login, schemas);
      const reader = await Session.open(account, { flavour });
      await reader.run('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
      return new Moment(admin, reader, account.user, side);
    } catch (error) {
      await admin.close();
      throw error;
    }
  }

  async take(): Promise<void> {
    await this.reader.run(beginReading);
    await this.admin.run('SET SESSION group_concat_max_len = 4294967295');
    this.objects = await readObjects(this.admin, this.reader, this.side);
  }

  async isAlive(): Promise<boolean> {
    return this.reader.texts('SELECT 1').then(
      () => true,
      () => false,
    );
  }

  /** Returns the columns of each table, without generated columns. */
  async columns(): Promise<Map<string, Column[]>> {
    const tables = new Map<string, Column[]>();
    for (const [schema, table, name, type] of (await this.reader.texts(columnsSql)).map((row) =>
      row.map((value) => value ?? ''),
    )) {
      const key = `${quoteName(schema ?? '')}.${quoteName(table ?? '')}`;
      if (!this.objects.has(`table ${key}`)) continue;
      tables.set(key, [
        ...(tables.get(key) ?? []),
        { schema: schema ?? '', table: table ?? '', name: name ?? '', type: type ?? '' },
      ]);
    }
    return tables;
  }

  /**
   * Returns the number of rows and a sum over their hashes. The order of the rows does not change the sum. Returns null
   * if the table cannot be read any more, for example because it was replaced.
   */
  async sum(columns: readonly Column[]): Promise<string | null> {
    const [{ schema, table }] = columns as [Column];
    const values = columns.map(({ name, type }) => `IFNULL(MD5(${bytesOf(name, type)}), '-')`);
    const half = (from: number): string =>
      `COALESCE(SUM(CAST(CONV(SUBSTR(h, ${from}, 15), 16, 10) AS DECIMAL(20))), 0)`;
    try {
      await holdTable(this.reader, { schema, name: table });
      const [row] = await this.reader.texts(
        `SELECT COUNT(*), ${half(1)}, ${half(16)} FROM (SELECT MD5(CONCAT(${values.join(', ')})) AS h ` +
          `FROM ${quoteName(schema)}.${quoteName(table)}) hashes`,
      );
      await this.reader.run('ROLLBACK TO SAVEPOINT drydock');
      return (row ?? []).join(' ');
    } catch (error) {
      if (await this.isAlive()) return null;
      throw error;
    }
  }

  /**
   * Returns the next value of a sequence and its step, or null if it cannot be read. A sequence is not part of the
   * snapshot.
   */
  async sequence(name: string): Promise<{ next: bigint; step: bigint } | null> {
    const rows = await this.reader.texts(`SELECT next_not_cached_value, increment FROM ${name}`).catch(() => []);
    const [next, step] = rows[0] ?? [];
    return next == null || step == null ? null : { next: BigInt(next), step: BigInt(step) };
  }

  async close(): Promise<void> {
    this.reader.destroy();
    await dropAccount(this.admin, this.user).catch(() => undefined);
    await this.admin.close();
  }
}

interface Column {
  schema: string;
  table: string;
  name: string;
  type: string;
}

const isTheirs = (column: string): string =>
  `${column} NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')`;
const quotedSql = (...columns: string[]): string =>
  columns.map((column) => `CONCAT('\`', REPLACE(${column}, '\`', '\`\`'), '\`')`).join(", '.', ");
/** Versions from 10.6 write `utf8` as `utf8mb3`. */
const collationSql = (column: string): string => `REPLACE(${column}, 'utf8mb3_', 'utf8_')`;
/** MariaDB writes its own syntax into a comment. Newer versions mark the comment with an M. */
const typeSql = "REPLACE(COLUMN_TYPE, '/*M!', '/*!')";
const tableName = quotedSql('TABLE_SCHEMA', 'TABLE_NAME');
/** Groups by bytes, because information_schema treats `Users` as `users`. */
const byTable = (schema = 'TABLE_SCHEMA'): string => `GROUP BY BINARY ${schema}, BINARY TABLE_NAME`;

// In information_schema, 11.8 writes the default of a binary string as hexadecimal digits, and earlier versions lose
// its bytes above 127. So the default's value is queried, which needs no row.
const isAskedDefault = String.raw`DATA_TYPE IN ('binary', 'varbinary', 'enum', 'set')
  AND COLUMN_DEFAULT REGEXP '^x?''([^''\\\\]|''''|\\\\.)*''$'`;
/**
 * Versions write the non-ASCII letters of a sequence's name differently, and 10.5 writes question marks. So every
 * non-ASCII letter becomes a question mark here.
 */
const defaultSql = `IF(COLUMN_DEFAULT LIKE 'nextval(%', REGEXP_REPLACE(COLUMN_DEFAULT, '[^ -~]', '?'), COLUMN_DEFAULT)`;
const defaultsSql = `
  SELECT CONCAT(${tableName}), CONCAT(
    'SELECT JSON_ARRAY(', GROUP_CONCAT('HEX(DEFAULT(', ${quotedSql('COLUMN_NAME')}, '))' ORDER BY ORDINAL_POSITION),
    ') FROM (SELECT 1) one LEFT JOIN ', ${tableName}, ' ON FALSE')
  FROM information_schema.COLUMNS WHERE ${isTheirs('TABLE_SCHEMA')} AND ${isAskedDefault} ${byTable()}`;

const kindsSql = `SELECT CONCAT(${tableName}),
    CASE TABLE_TYPE WHEN 'SEQUENCE' THEN 'sequence' WHEN 'VIEW' THEN 'view' ELSE 'table' END
  FROM information_schema.TABLES WHERE ${isTheirs('TABLE_SCHEMA')}`;
/** For a view, only names and types of its columns are compared, because versions compute different lengths. */
const columnDigestsSql = `SELECT CONCAT(${tableName}),
    MD5(GROUP_CONCAT(JSON_ARRAY(COLUMN_NAME, ${typeSql}, ${collationSql('COLLATION_NAME')}, IS_NULLABLE,
      IF(${isAskedDefault}, 'asked', ${defaultSql}), EXTRA) ORDER BY ORDINAL_POSITION)),
    MD5(GROUP_CONCAT(JSON_ARRAY(COLUMN_NAME, DATA_TYPE) ORDER BY ORDINAL_POSITION))
  FROM information_schema.COLUMNS WHERE ${isTheirs('TABLE_SCHEMA')} ${byTable()}`;
/**
 * The queries for the parts of tables and views besides columns. Each query reads all tables and views, because one
 * query for each table would take quadratic time.
 */
const partsSql = [
  `SELECT CONCAT(${tableName}), ${collationSql('TABLE_COLLATION')} FROM information_schema.TABLES ` +
    `WHERE ${isTheirs('TABLE_SCHEMA')}`,
  `SELECT CONCAT(${tableName}),
      MD5(GROUP_CONCAT(JSON_ARRAY(INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, INDEX_TYPE)
        ORDER BY INDEX_NAME, SEQ_IN_INDEX))
     FROM information_schema.STATISTICS WHERE ${isTheirs('TABLE_SCHEMA')} ${byTable()}`,
  `SELECT CONCAT(${quotedSql('CONSTRAINT_SCHEMA', 'TABLE_NAME')}),
      MD5(GROUP_CONCAT(JSON_ARRAY(CONSTRAINT_NAME, REFERENCED_TABLE_NAME, UPDATE_RULE, DELETE_RULE)
        ORDER BY CONSTRAINT_NAME))
     FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE ${isTheirs('CONSTRAINT_SCHEMA')}
     ${byTable('CONSTRAINT_SCHEMA')}`,
  `SELECT CONCAT(${quotedSql('CONSTRAINT_SCHEMA', 'TABLE_NAME')}),
      MD5(GROUP_CONCAT(CONSTRAINT_NAME ORDER BY CONSTRAINT_NAME))
     FROM information_schema.CHECK_CONSTRAINTS WHERE ${isTheirs('CONSTRAINT_SCHEMA')} ${byTable('CONSTRAINT_SCHEMA')}`,
  `SELECT CONCAT(${tableName}), MD5(JSON_ARRAY(DEFINER, SECURITY_TYPE, CHECK_OPTION)) ` +
    `FROM information_schema.VIEWS WHERE ${isTheirs('TABLE_SCHEMA')}`,
];
/**
 * The query for schemas, routines, triggers and events. It has no texts of views, because each version writes them in
 * its own way.
 */
const programsSql = [
  `SELECT CONCAT('schema ', ${quotedSql('SCHEMA_NAME')}), ${collationSql('DEFAULT_COLLATION_NAME')}
     FROM information_schema.SCHEMATA WHERE ${isTheirs('SCHEMA_NAME')}`,
  `SELECT CONCAT('parameters of ', LOWER(ROUTINE_TYPE), ' ', ${quotedSql('SPECIFIC_SCHEMA', 'SPECIFIC_NAME')}),
      MD5(GROUP_CONCAT(JSON_ARRAY(PARAMETER_MODE, PARAMETER_NAME, DTD_IDENTIFIER) ORDER BY ORDINAL_POSITION))
     FROM information_schema.PARAMETERS WHERE ${isTheirs('SPECIFIC_SCHEMA')}
     GROUP BY ROUTINE_TYPE, BINARY SPECIFIC_SCHEMA, BINARY SPECIFIC_NAME`,
  `SELECT CONCAT(LOWER(ROUTINE_TYPE), ' ', ${quotedSql('ROUTINE_SCHEMA', 'ROUTINE_NAME')}),
      MD5(JSON_ARRAY(ROUTINE_DEFINITION, DEFINER, SECURITY_TYPE, IS_DETERMINISTIC, SQL_DATA_ACCESS, SQL_MODE))
     FROM information_schema.ROUTINES WHERE ${isTheirs('ROUTINE_SCHEMA')}`,
  `SELECT CONCAT('trigger ', ${quotedSql('TRIGGER_SCHEMA', 'TRIGGER_NAME')}, ' of ', EVENT_OBJECT_TABLE),
      MD5(JSON_ARRAY(ACTION_STATEMENT, DEFINER, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER, SQL_MODE))
     FROM information_schema.TRIGGERS WHERE ${isTheirs('TRIGGER_SCHEMA')}`,
  `SELECT CONCAT('event ', ${quotedSql('EVENT_SCHEMA', 'EVENT_NAME')}),
      MD5(JSON_ARRAY(EVENT_DEFINITION, DEFINER, STATUS, EVENT_TYPE, INTERVAL_VALUE, INTERVAL_FIELD, EXECUTE_AT,
        ON_COMPLETION, TIME_ZONE, SQL_MODE))
     FROM information_schema.EVENTS WHERE ${isTheirs('EVENT_SCHEMA')}`,
].join(' UNION ALL ');
const columnsSql = `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS
  WHERE ${isTheirs('TABLE_SCHEMA')} AND COALESCE(GENERATION_EXPRESSION, '') = ''
  ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION`;

/** One statement reads the defaults of at most this many tables, because the server opens all of them at once. */
const askedAtOnce = 50;

async function readObjects(admin: Session, reader: Session, { release, owner }: Side): Promise<Objects> {
  const objects = new Map((await admin.texts(programsSql)).map(([name, digest]) => [name ?? '', digest ?? '']));
  const kinds = new Map((await admin.texts(kindsSql)).map(([name, kind]) => [name ?? '', kind ?? '']));
  for (const [name, kind] of kinds) objects.set(`${kind} ${name}`, '');
  const add = (name: string | null | undefined, digest: string | null | undefined): void => {
    const object = `${kinds.get(name ?? '')} ${name}`;
    const known = objects.get(object);
    if (known !== undefined) objects.set(object, `${known} ${digest}`);
  };
  for (const [name, whole, types] of await admin.texts(columnDigestsSql))
    add(name, kinds.get(name ?? '') === 'view' ? types : whole);
  for (const sql of partsSql) for (const [name, digest] of await admin.texts(sql)) add(name, digest);
  const asking = (await admin.texts(defaultsSql)).filter(([name]) => kinds.get(name ?? '') !== 'view');
  // The reader runs these queries. In a session of `admin`, a view that has replaced a table would run functions with
  // all rights.
  for (let at = 0; at < asking.length; at += askedAtOnce) {
    await reader.run('SAVEPOINT drydock');
    const some = asking.slice(at, at + askedAtOnce);
    const questions = some.map(([, sql], number) => sql?.replace('SELECT ', `SELECT ${number}, `));
    for (const [number, defaults] of await reader.texts(questions.join(' UNION ALL ')))
      add(some[Number(number)]?.[0], defaults);
    await reader.run('ROLLBACK TO SAVEPOINT drydock');
  }
  const { accounts, grants } = await listAccounts(admin);
  const compared = { accounts, grants: grants.filter((grant) => !isOfOwner(grant, owner)) };
  for (const [account, rights] of tellRights(compared, release)) objects.set(account, rights);
  return objects;
}

/** Whether a grant is the owner's on its own schema. In a grant, `_` and `%` are escaped. */
const isOfOwner = ({ on, user, host, schema }: DumpedGrant, owner: Side['owner']): boolean =>
  on === 'schema' && user === owner?.user && host === '%' && schema.replaceAll(/\\([_%])/g, '$1') === owner.schema;

const geometries = new Set([
  'geometry',
  'point',
  'linestring',
  'polygon',
  'multipoint',
  'multilinestring',
  'multipolygon',
  'geometrycollection',
]);

/**
 * Returns an expression for a value as bytes. Every version gives the same bytes for the same value. The sum with zero
 * makes a double of a float, and takes the sign from a negative zero, which newer versions of MariaDB write without it.
 */
function bytesOf(name: string, type: string): string {
  const column = quoteName(name);
  if (geometries.has(type)) return `ST_AsWKB(${column})`;
  return `CAST(${type === 'float' || type === 'double' ? `${column} + 0e0` : column} AS BINARY)`;
}

/**
 * Compares every row and every definition of the frozen old server with a snapshot of the new one, and checks that no
 * sequence went back. If `moment` is null, the snapshot of the switch was lost, and a new snapshot is taken. A
 * difference may then come from a later write, so the outcome is `undecided` instead of `different`.
 */
export async function compareServers(
  { old, target }: { old: Side; target: Side },
  moment: Moment | null,
  progress: (share: number) => void = () => undefined,
): Promise<Comparison> {
  const frozen = await Moment.open(old);
  let opened: Moment | null = null;
  try {
    if (moment === null) opened = await Moment.open(target);
    await frozen.take();
    await opened?.take();
    return await compareMoments(frozen, (moment ?? opened) as Moment, { isOfTheSwitch: moment !== null, progress });
  } finally {
    await Promise.all([frozen.close(), opened?.close()]);
  }
}

/**
 * Returns a table's columns as text. The target's columns are read later than its snapshot. They are compared only if
 * the table's rows could still be read in the snapshot, which proves that its definition has not changed since.
 */
const shapeOf = (columns: readonly Column[]): string => JSON.stringify(columns.map(({ name, type }) => [name, type]));

async function compareMoments(
  old: Moment,
  target: Moment,
  { isOfTheSwitch, progress }: { isOfTheSwitch: boolean; progress: (share: number) => void },
): Promise<Comparison> {
  const differing = [...old.objects]
    .filter(([name, digest]) => target.objects.get(name) !== digest)
    .map(([name]) => name);
  differing.push(...[...target.objects.keys()].filter((name) => !old.objects.has(name)));
  const undecided: string[] = [];
  const [columns, columnsNow] = [[...(await old.columns())], await target.columns()];
  for (const [at, [name, written]] of columns.entries()) {
    const object = `table ${name}`;
    if (!target.objects.has(object) || differing.includes(object)) continue;
    const [left, right] = await Promise.all([old.sum(written), target.sum(written)]);
    if (right === null) undecided.push(object);
    else if (left !== right || shapeOf(written) !== shapeOf(columnsNow.get(name) ?? [])) differing.push(object);
    progress((at + 1) / columns.length);
  }
  for (const object of old.objects.keys()) {
    if (!object.startsWith('sequence ') || !target.objects.has(object)) continue;
    const name = object.slice('sequence '.length);
    const [left, right] = await Promise.all([old.sequence(name), target.sequence(name)]);
    if (left === null || right === null) undecided.push(object);
    else if (left.step > 0n ? right.next < left.next : right.next > left.next) differing.push(object);
  }
  const names = [...differing, ...undecided];
  const outcome = names.length === 0 ? 'equal' : differing.length > 0 && isOfTheSwitch ? 'different' : 'undecided';
  return { outcome, tables: columns.length, names };
}
