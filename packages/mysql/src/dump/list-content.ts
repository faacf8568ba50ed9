import { isName, quoteName, quoteText, type RawRow, type Session } from '../session/session';
import { asTransferError } from '../session/transfer-error';
import { exactly, quotedName, type Routine, readableDefinition, replaceOutsideQuotes } from './definition-text';
import type { ColumnKind, Content, DumpedProgram, DumpedTable, Finding } from './manifest';

/** Returns a definition as text with one character for each byte. */
const bytesText = (value: Buffer | null | undefined): string => (value ?? Buffer.alloc(0)).toString('latin1');

const numbers = new Set(['tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'float', 'double', 'year']);
/** Types that do not accept a hexadecimal literal. Their text is ASCII. */
const quoted = new Set(['date', 'time', 'datetime', 'timestamp', 'uuid', 'inet4', 'inet6']);

export function kindOf(dataType: string, isMariadb: boolean): ColumnKind {
  if (numbers.has(dataType)) return 'number';
  if (quoted.has(dataType)) return 'quoted';
  return dataType === 'json' && !isMariadb ? 'json' : 'bytes';
}

/** Returns the expression that reads a value without loss. MySQL writes a float as text with only six digits. */
export const selectOf = (name: string, dataType: string): string =>
  dataType === 'float' ? `${quoteName(name)} + 0e0` : quoteName(name);

/**
 * Tells whether a table has rows of its own. A MERGE table shows the rows of other tables. The engine's name is
 * compared in lower case, because MySQL writes it in capitals.
 */
export const hasOwnRows = ({ engine }: Pick<DumpedTable, 'engine'>): boolean => engine.toLowerCase() !== 'mrg_myisam';

export interface ListedTable extends DumpedTable {
  selects: string[];
}

type Definitions = Pick<Content, 'sequences' | 'programs'> & { tables: ListedTable[]; findings: Finding[] };

/**
 * Reads the definitions of a schema without running its code. `reader` must not be in a transaction, because a
 * read-only transaction refuses to show a view whose functions write. `rows` reads only the next values of sequences,
 * and must be in the transaction of `beginSnapshot`.
 */
export async function listContent(reader: Session, rows: Session, schema: string): Promise<Definitions> {
  await reader.run(`USE ${quoteName(schema)}`);
  const found: Definitions = { sequences: [], tables: [], programs: [], findings: [] };
  const listed = await reader.texts(
    'SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES ' +
      `WHERE ${isName('TABLE_SCHEMA', schema)} ORDER BY CAST(TABLE_NAME AS BINARY)`,
  );
  for (const [name = '', type, engine] of listed.map((row) => row.map((value) => value ?? ''))) {
    const object = `${type === 'VIEW' ? 'view' : 'table'} ${quoteName(schema)}.${quoteName(name)}`;
    await unlessBroken(found, object, async () => {
      if (type === 'SEQUENCE') return void found.sequences.push(await readSequence(reader, rows, schema, name));
      if (type === 'VIEW') return void found.programs.push(await readView(reader, schema, name));
      found.tables.push(await readTable(reader, schema, name, engine ?? ''));
      if (type === 'SYSTEM VERSIONED')
        found.findings.push({ code: 'history_not_kept', object, reason: 'only the rows of today are kept' });
      const reason = `its engine ${engine} has no part in the moment of the others`;
      if (engine?.toLowerCase() !== 'innodb') found.findings.push({ code: 'not_transactional', object, reason });
    });
  }
  for (const read of [readRoutines, readTriggers, readEvents]) await read(reader, schema, found);
  return found;
}

/**
 * Error codes for objects that the server itself cannot show and nobody can use. ER_WRONG_MRG_TABLE: a MERGE table
 * whose parts are missing or not the customer's. ER_PARSE_ERROR: a program with a gbk, sjis or big5 character whose
 * last byte is that of a backslash.
 */
const brokenCodes = new Set(['ER_WRONG_MRG_TABLE', 'ER_PARSE_ERROR']);

/** Reads an object. If the server cannot show the object, it becomes a finding and the dump continues. */
async function unlessBroken({ findings }: Definitions, object: string, read: () => Promise<unknown>): Promise<void> {
  try {
    await read();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && brokenCodes.has(String(error.code))))
      throw asTransferError('dump_failed', error, object);
    findings.push({ code: object.startsWith('view ') ? 'view_broken' : 'not_restored', object, reason: error.message });
  }
}

async function readTable(reader: Session, schema: string, name: string, engine: string): Promise<ListedTable> {
  const rows = await reader.texts(
    `SELECT COLUMN_NAME, DATA_TYPE, GENERATION_EXPRESSION FROM information_schema.COLUMNS
      WHERE ${isName('TABLE_SCHEMA', schema)} AND ${isName('TABLE_NAME', name)} ORDER BY ORDINAL_POSITION`,
  );
  const written = rows
    .filter(([, , generation]) => !generation)
    .map(([column, dataType]) => ({ name: column ?? '', dataType: dataType ?? '' }));
  const columns = written.map((column) => ({
    name: column.name,
    kind: kindOf(column.dataType, reader.flavour === 'mariadb'),
  }));
  const selects = written.map((column) => selectOf(column.name, column.dataType));
  const definition = bytesText((await reader.rows(`SHOW CREATE TABLE ${quoteName(name)}`))[0]?.[1]);
  return { schema, name, engine, columns, definition: await withQuotedKeys(reader, schema, name, definition), selects };
}

/** Doubles the backticks in the names of foreign keys, because MariaDB before 11 writes these names unchanged. */
async function withQuotedKeys(reader: Session, schema: string, table: string, definition: string): Promise<string> {
  if (reader.flavour !== 'mariadb' || !definition.includes('` FOREIGN KEY (`')) return definition;
  const keys = new Map<string, { columns: string[]; of: string[] }>();
  const rows = await reader.texts(
    `SELECT CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE
      WHERE ${isName('TABLE_SCHEMA', schema)} AND ${isName('TABLE_NAME', table)}
      AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY ORDINAL_POSITION`,
  );
  for (const [key, column, of] of rows.map((row) => row.map((value) => value ?? ''))) {
    const { columns, of: ofAll } = keys.get(key ?? '') ?? { columns: [], of: [] };
    keys.set(key ?? '', { columns: [...columns, column ?? ''], of: [...ofAll, of ?? ''] });
  }
  if (keys.size === 0) return definition;
  const bytes = (text: string): string => Buffer.from(text).toString('latin1');
  const plain = (name: string): string => `\`${name}\``;
  const written = [...keys].map(([key, { columns, of }]) => {
    const text = (quote: (name: string) => string): [begins: string, ends: string] => [
      bytes(`  CONSTRAINT ${quote(key)} FOREIGN KEY (${columns.map(quote).join(', ')}) REFERENCES `),
      bytes(` (${of.map(quote).join(', ')})`),
    ];
    return { plain: text(plain), meant: text(quoteName) };
  });
  // Longer keys come first, because the text of a shorter key may be part of a longer key's text.
  written.sort((a, b) => b.plain[0].length - a.plain[0].length);
  const patterns = written.map(
    ({ plain: [begins, ends] }, at) =>
      `${exactly(begins)}(?<table${at}>${quotedName}(?:\\.${quotedName})?)${exactly(ends)}`,
  );
  return replaceOutsideQuotes(definition, patterns.join('|'), (groups) => {
    const at = written.findIndex((_, number) => groups[`table${number}`] !== undefined);
    return written[at]?.meant.join(groups[`table${at}`]) ?? '';
  });
}

async function readSequence(
  reader: Session,
  rows: Session,
  schema: string,
  name: string,
): Promise<Content['sequences'][number]> {
  const definition = bytesText((await reader.rows(`SHOW CREATE SEQUENCE ${quoteName(name)}`))[0]?.[1]);
  const [[next] = []] = await rows.texts(`SELECT next_not_cached_value FROM ${quoteName(schema)}.${quoteName(name)}`);
  return { schema, name, definition, next: next ?? '' };
}

const text = (value: Buffer | null | undefined): string => value?.toString('utf8') ?? '';

async function readView(reader: Session, schema: string, name: string): Promise<DumpedProgram> {
  const [[, definition, charset, collation] = []] = await reader.rows(`SHOW CREATE VIEW ${quoteName(name)}`);
  const settings = { sqlMode: '', charset: text(charset), collation: text(collation), timeZone: null };
  return { kind: 'VIEW', schema, name, ...settings, definition: bytesText(definition) };
}

async function readRoutines(reader: Session, schema: string, found: Definitions): Promise<void> {
  const listed = await reader.texts(
    `SELECT ROUTINE_TYPE, ROUTINE_NAME, ROUTINE_COMMENT, DTD_IDENTIFIER FROM information_schema.ROUTINES
      WHERE ${isName('ROUTINE_SCHEMA', schema)} ORDER BY ROUTINE_TYPE, ROUTINE_NAME`,
  );
  const kinds = {
    FUNCTION: 'FUNCTION',
    PROCEDURE: 'PROCEDURE',
    PACKAGE: 'PACKAGE',
    'PACKAGE BODY': 'PACKAGE BODY',
  } as const;
  for (const [type, name, comment, returns] of listed) {
    const kind = kinds[type as keyof typeof kinds];
    const routine = { comment: comment ?? '', returns: returns ?? '' };
    await unlessBroken(found, `${kind.toLowerCase()} ${quoteName(schema)}.${quoteName(name ?? '')}`, async () => {
      const [row] = await reader.rows(`SHOW CREATE ${kind} ${quoteName(name ?? '')}`);
      found.programs.push(
        await programOf(reader, { kind, schema, name: name ?? '' }, row, { at: [1, 2, 3, 4], routine }),
      );
    });
  }
}

async function readTriggers(reader: Session, schema: string, found: Definitions): Promise<void> {
  const listed = await reader.texts(
    `SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE ${isName('TRIGGER_SCHEMA', schema)}
      ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER`,
  );
  for (const [name] of listed) {
    await unlessBroken(found, `trigger ${quoteName(schema)}.${quoteName(name ?? '')}`, async () => {
      const [row] = await reader.rows(`SHOW CREATE TRIGGER ${quoteName(name ?? '')}`);
      found.programs.push(
        await programOf(reader, { kind: 'TRIGGER', schema, name: name ?? '' }, row, { at: [1, 2, 3, 4] }),
      );
    });
  }
}

async function readEvents(reader: Session, schema: string, found: Definitions): Promise<void> {
  const listed = await reader.texts(
    `SELECT EVENT_NAME FROM information_schema.EVENTS WHERE ${isName('EVENT_SCHEMA', schema)} ORDER BY EVENT_NAME`,
  );
  for (const [name] of listed) {
    await unlessBroken(found, `event ${quoteName(schema)}.${quoteName(name ?? '')}`, async () => {
      const [row] = await reader.rows(`SHOW CREATE EVENT ${quoteName(name ?? '')}`);
      const event = await programOf(reader, { kind: 'EVENT', schema, name: name ?? '' }, row, { at: [1, 3, 4, 5] });
      found.programs.push({ ...event, timeZone: text(row?.[2]) });
    });
  }
}

type Named = Pick<DumpedProgram, 'kind' | 'schema' | 'name'>;

interface Place {
  /**
   * The columns of SHOW CREATE with the sql_mode, the definition, the client's character set and the connection's
   * collation.
   */
  at: readonly [number, number, number, number];
  routine?: Routine;
}

async function programOf(
  reader: Session,
  named: Named,
  row: RawRow | undefined,
  { at, routine }: Place,
): Promise<DumpedProgram> {
  const [sqlMode, definition, charset, collation] = at.map((index) => row?.[index]);
  const settings = { sqlMode: text(sqlMode), charset: text(charset), collation: text(collation), timeZone: null };
  const program = { ...named, ...settings, definition: bytesText(definition) };
  return { ...program, definition: await readableDefinition(reader, program, routine ?? { comment: '', returns: '' }) };
}

/**
 * Starts a snapshot in a read-only transaction. If the customer has replaced a table by a view that calls functions,
 * these functions can then change nothing.
 */
export const beginReading = 'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY';

/**
 * Starts the snapshot of a dump. It waits for no query, and no query waits for it. On MariaDB, returns the GTID of the
 * transactions that the snapshot contains, or an empty text if the server has no binary log. On MySQL, returns an empty
 * text. There the GTID could be read only under a global read lock, which waits for every running query and stops all
 * writing until then. Only an upgrade needs the GTID, and only MariaDB is upgraded by replication.
 */
export async function beginSnapshot(reader: Session): Promise<string> {
  await reader.run('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  await reader.run(beginReading);
  if (reader.flavour === 'mysql') return '';
  const rows = await reader.texts("SHOW STATUS LIKE 'binlog\\_snapshot\\_%'");
  const status = new Map(rows.map(([name, value]) => [name?.toLowerCase(), value ?? '']));
  const [file, position] = [
    status.get('binlog_snapshot_file') ?? '',
    Number(status.get('binlog_snapshot_position') ?? 0),
  ];
  if (file === '') return '';
  const [[gtid] = []] = await reader.texts(`SELECT BINLOG_GTID_POS(${quoteText(file)}, ${position})`);
  return gtid ?? '';
}
