import { compareVersions } from '../engines/version';
import { quoteName, quoteText, type RawRow, type Session } from '../session/session';
import { asTransferError } from '../session/transfer-error';
import type { ColumnKind, Content, DumpedProgram, DumpedTable, Finding } from './manifest';
import { type Routine, readableDefinition } from './program-text';

/** What a definition is as text: its bytes, one for each character. */
const bytesText = (value: Buffer | null | undefined): string => (value ?? Buffer.alloc(0)).toString('latin1');

const numbers = new Set(['tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'float', 'double', 'year']);
/** Whose text is ASCII, and which do not take bytes. */
const quoted = new Set(['date', 'time', 'datetime', 'timestamp', 'uuid', 'inet4', 'inet6']);

export function kindOf(dataType: string, isMariadb: boolean): ColumnKind {
  if (numbers.has(dataType)) return 'number';
  if (quoted.has(dataType)) return 'quoted';
  return dataType === 'json' && !isMariadb ? 'json' : 'bytes';
}

/** The expression that gives a value without a loss: a float as text has six digits. */
export const selectOf = (name: string, dataType: string): string => (dataType === 'float' ? `${quoteName(name)} + 0e0` : quoteName(name));

/** A table of MERGE shows the rows of others. */
export const hasOwnRows = ({ engine }: Pick<DumpedTable, 'engine'>): boolean => engine !== 'MRG_MyISAM';

export interface ListedTable extends DumpedTable {
  selects: string[];
}

type Definitions = Pick<Content, 'sequences' | 'programs'> & { tables: ListedTable[]; findings: Finding[] };

/** Reads the definitions of a schema, as the reader. Nothing of it runs. */
export async function listContent(reader: Session, schema: string): Promise<Definitions> {
  await reader.run(`USE ${quoteName(schema)}`);
  const found: Definitions = { sequences: [], tables: [], programs: [], findings: [] };
  const listed = await reader.texts(
    `SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ${quoteText(schema)} ORDER BY TABLE_NAME`,
  );
  for (const [name = '', type, engine] of listed.map((row) => row.map((value) => value ?? ''))) {
    const object = `table ${quoteName(schema)}.${quoteName(name)}`;
    try {
      if (type === 'SEQUENCE') found.sequences.push(await readSequence(reader, schema, name));
      else if (type === 'VIEW') found.programs.push(await readView(reader, schema, name));
      else {
        found.tables.push(await readTable(reader, schema, name, engine ?? ''));
        if (type === 'SYSTEM VERSIONED')
          found.findings.push({ code: 'history_not_kept', object, reason: 'only the rows of today are kept' });
        if (engine?.toLowerCase() !== 'innodb') {
          found.findings.push({
            code: 'not_transactional',
            object,
            reason: `its engine ${engine} has no part in the moment of the others`,
          });
        }
      }
    } catch (error) {
      // MySQL reads the text of a view again to show it, and cannot where a letter of sjis or big5 ends like a backslash.
      if (type !== 'VIEW' || !(error instanceof Error && 'code' in error && error.code === 'ER_PARSE_ERROR'))
        throw asTransferError('dump_failed', error, object);
      found.findings.push({ code: 'view_broken', object: `view ${quoteName(schema)}.${quoteName(name)}`, reason: error.message });
    }
  }
  for (const read of [readRoutines, readTriggers, readEvents]) found.programs.push(...(await read(reader, schema)));
  return found;
}

async function readTable(reader: Session, schema: string, name: string, engine: string): Promise<ListedTable> {
  const rows = await reader.texts(
    `SELECT COLUMN_NAME, DATA_TYPE, GENERATION_EXPRESSION FROM information_schema.COLUMNS
      WHERE TABLE_SCHEMA = ${quoteText(schema)} AND TABLE_NAME = ${quoteText(name)} ORDER BY ORDINAL_POSITION`,
  );
  const written = rows
    .filter(([, , generation]) => !generation)
    .map(([column, dataType]) => ({ name: column ?? '', dataType: dataType ?? '' }));
  const columns = written.map((column) => ({ name: column.name, kind: kindOf(column.dataType, reader.flavour === 'mariadb') }));
  const selects = written.map((column) => selectOf(column.name, column.dataType));
  const definition = bytesText((await reader.rows(`SHOW CREATE TABLE ${quoteName(name)}`))[0]?.[1]);
  return { schema, name, engine, columns, definition, selects };
}

async function readSequence(reader: Session, schema: string, name: string): Promise<Content['sequences'][number]> {
  const definition = bytesText((await reader.rows(`SHOW CREATE SEQUENCE ${quoteName(name)}`))[0]?.[1]);
  const [[next] = []] = await reader.texts(`SELECT next_not_cached_value FROM ${quoteName(name)}`);
  return { schema, name, definition, next: next ?? '' };
}

const text = (value: Buffer | null | undefined): string => value?.toString('utf8') ?? '';

async function readView(reader: Session, schema: string, name: string): Promise<DumpedProgram> {
  const [[, definition, charset, collation] = []] = await reader.rows(`SHOW CREATE VIEW ${quoteName(name)}`);
  const settings = { sqlMode: '', charset: text(charset), collation: text(collation), timeZone: null };
  return { kind: 'VIEW', schema, name, ...settings, definition: bytesText(definition) };
}

async function readRoutines(reader: Session, schema: string): Promise<DumpedProgram[]> {
  const listed = await reader.texts(
    `SELECT ROUTINE_TYPE, ROUTINE_NAME, ROUTINE_COMMENT, DTD_IDENTIFIER FROM information_schema.ROUTINES
      WHERE ROUTINE_SCHEMA = ${quoteText(schema)} ORDER BY ROUTINE_TYPE, ROUTINE_NAME`,
  );
  const kinds = { FUNCTION: 'FUNCTION', PROCEDURE: 'PROCEDURE', PACKAGE: 'PACKAGE', 'PACKAGE BODY': 'PACKAGE BODY' } as const;
  const found: DumpedProgram[] = [];
  for (const [type, name, comment, returns] of listed) {
    const kind = kinds[type as keyof typeof kinds];
    const [row] = await reader.rows(`SHOW CREATE ${kind} ${quoteName(name ?? '')}`);
    const routine = { comment: comment ?? '', returns: returns ?? '' };
    found.push(await programOf(reader, { kind, schema, name: name ?? '' }, row, { at: [1, 2, 3, 4], routine }));
  }
  return found;
}

async function readTriggers(reader: Session, schema: string): Promise<DumpedProgram[]> {
  const listed = await reader.texts(
    `SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ${quoteText(schema)}
      ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER`,
  );
  const found: DumpedProgram[] = [];
  for (const [name] of listed) {
    const [row] = await reader.rows(`SHOW CREATE TRIGGER ${quoteName(name ?? '')}`);
    found.push(await programOf(reader, { kind: 'TRIGGER', schema, name: name ?? '' }, row, { at: [1, 2, 3, 4] }));
  }
  return found;
}

async function readEvents(reader: Session, schema: string): Promise<DumpedProgram[]> {
  const listed = await reader.texts(
    `SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ${quoteText(schema)} ORDER BY EVENT_NAME`,
  );
  const found: DumpedProgram[] = [];
  for (const [name] of listed) {
    const [row] = await reader.rows(`SHOW CREATE EVENT ${quoteName(name ?? '')}`);
    const event = await programOf(reader, { kind: 'EVENT', schema, name: name ?? '' }, row, { at: [1, 3, 4, 5] });
    found.push({ ...event, timeZone: text(row?.[2]) });
  }
  return found;
}

type Named = Pick<DumpedProgram, 'kind' | 'schema' | 'name'>;

interface Place {
  /** Where SHOW CREATE says the sql_mode, the definition, the character set of the client and the collation of the connection. */
  at: readonly [number, number, number, number];
  routine?: Routine;
}

async function programOf(reader: Session, named: Named, row: RawRow | undefined, { at, routine }: Place): Promise<DumpedProgram> {
  const [sqlMode, definition, charset, collation] = at.map((index) => row?.[index]);
  const settings = { sqlMode: text(sqlMode), charset: text(charset), collation: text(collation), timeZone: null };
  const program = { ...named, ...settings, definition: bytesText(definition) };
  return { ...program, definition: await readableDefinition(reader, program, routine ?? { comment: '', returns: '' }) };
}

/** Begins the moment of a dump, and says which transactions are in it. Writers wait for some milliseconds on MySQL, and not at all on MariaDB. */
export async function beginSnapshot(reader: Session, release: string): Promise<string> {
  await reader.run('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  if (reader.flavour === 'mariadb') {
    await reader.run('START TRANSACTION WITH CONSISTENT SNAPSHOT');
    const rows = await reader.texts("SHOW STATUS LIKE 'binlog\\_snapshot\\_%'");
    const status = new Map(rows.map(([name, value]) => [name?.toLowerCase(), value ?? '']));
    const [file, position] = [status.get('binlog_snapshot_file') ?? '', Number(status.get('binlog_snapshot_position') ?? 0)];
    const [[gtid] = []] = await reader.texts(`SELECT BINLOG_GTID_POS(${quoteText(file)}, ${position})`);
    return gtid ?? '';
  }
  if (compareVersions(release, '8.0') < 0) return '';
  await reader.run('SET SESSION lock_wait_timeout = 10');
  await reader.run('FLUSH TABLES WITH READ LOCK');
  try {
    await reader.run('START TRANSACTION WITH CONSISTENT SNAPSHOT');
    const [[gtid] = []] = await reader.texts('SELECT @@GLOBAL.gtid_executed');
    return gtid ?? '';
  } finally {
    await reader.run('UNLOCK TABLES');
    await reader.run('SET SESSION lock_wait_timeout = 60');
  }
}
