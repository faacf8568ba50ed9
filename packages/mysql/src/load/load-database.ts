import { checkDefinition, quotedName, replaceOutsideQuotes } from '../dump/definition-text';
import { readRows } from '../dump/dump-database';
import { hasOwnRows, selectOf } from '../dump/list-content';
import {
  type Content,
  contentSchema,
  type DumpedProgram,
  type DumpedTable,
  type Finding,
  manifestSchema,
  type Section,
} from '../dump/manifest';
import { RowSum } from '../dump/row-format';
import { dropAccount, listSchemas, makeLoader, openAdmin } from '../dump/transfer-account';
import type { Flavour } from '../engines/list-engines';
import { isName, type Login, quoteLiteral, quoteName, Session } from '../session/session';
import { asTransferError, TransferError } from '../session/transfer-error';
import { insertRows } from './insert-rows';
import { type LeftGrant, loadAccounts, loadGrants, tellLeft, tellRefused } from './load-accounts';

export interface LoadOptions {
  /**
   * The login of `root@localhost` on an empty instance. It creates schemas, accounts, rights and the account that loads
   * the rows.
   */
  admin: Login;
  flavour: Flavour;
  sections: AsyncIterable<Section>;
  /** True to lock the accounts of the dump, so that nobody can log in yet. */
  areAccountsLocked?: boolean;
  /** True to load only the definitions. The sections have no `data/` then. */
  isTrial?: boolean;
  /**
   * Decides about one-time events whose time has passed since the dump. True creates them, and they run as soon as the
   * event scheduler is on. With false, an event with ON COMPLETION PRESERVE is created disabled, and any other is not
   * created and becomes a finding.
   */
  keepsPastEvents?: boolean;
  signal?: AbortSignal;
}

export interface LoadResult {
  content: Content;
  /** All differences from the original, including the findings of the dump. */
  findings: Finding[];
}

/**
 * The loader's session accepts zero dates, and keeps a 0 in an AUTO_INCREMENT column. On MariaDB, rows and table
 * options are not checked again, because the original session's settings accepted them.
 */
const loadMode = (flavour: Flavour): string => {
  const unchecked = flavour === 'mariadb' ? ', check_constraint_checks = 0, innodb_strict_mode = 0' : '';
  return (
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', foreign_key_checks = 0, " +
    `unique_checks = 0${unchecked}`
  );
};

/**
 * The largest possible value of max_allowed_packet, in bytes. The load sets the server's limit to this value, because
 * hexadecimal digits make a row longer than it was in the customer's statement.
 */
const packetBytesMax = 2 ** 30;

/**
 * Loads a dump into an empty instance. An account that reaches only the customer's schemas creates definitions and
 * inserts rows. Routines, views, triggers and events are created after the rows, and the event scheduler is off, so
 * that no code of the customer runs. Unless `isTrial`, all rows are read back and compared. After a failure the
 * instance may be half filled, and the caller removes or empties it.
 * @throws TransferError
 */
export async function loadDatabase({
  admin: login,
  flavour,
  sections,
  areAccountsLocked = false,
  isTrial = false,
  keepsPastEvents = false,
  signal,
}: LoadOptions): Promise<LoadResult> {
  const admin = await openAdmin(login, flavour, signal);
  try {
    if ((await listSchemas(admin)).length > 0)
      throw new TransferError('database_not_empty', 'there are schemas of a customer already');
    const [[scheduler, packetBytes] = []] = await admin.texts(
      'SELECT @@GLOBAL.event_scheduler, @@GLOBAL.max_allowed_packet',
    );
    if (scheduler === 'ON') await admin.run('SET GLOBAL event_scheduler = OFF');
    await admin.run(`SET GLOBAL max_allowed_packet = ${packetBytesMax}`);
    try {
      return await loadSections(admin, {
        login,
        flavour,
        sections,
        areAccountsLocked,
        isTrial,
        keepsPastEvents,
        signal,
      });
    } finally {
      await admin.run(`SET GLOBAL max_allowed_packet = ${Number(packetBytes)}`).catch(() => undefined);
      // If the session is lost, the load has already failed with an error that says more.
      if (scheduler === 'ON') await admin.run('SET GLOBAL event_scheduler = ON').catch(() => undefined);
    }
  } catch (error) {
    throw asTransferError('load_failed', error);
  } finally {
    await admin.close();
  }
}

interface Loading {
  login: Login;
  flavour: Flavour;
  sections: AsyncIterable<Section>;
  areAccountsLocked: boolean;
  isTrial: boolean;
  keepsPastEvents: boolean;
  signal: AbortSignal | undefined;
}

async function loadSections(
  admin: Session,
  { login, flavour, sections, areAccountsLocked, isTrial, keepsPastEvents, signal }: Loading,
): Promise<LoadResult> {
  const source = sections[Symbol.asyncIterator]();
  const next = async (path: string): Promise<Section> => {
    const { value } = await source.next();
    if (value?.path !== path) throw new TransferError('dump_malformed', `${path} is missing`);
    return value;
  };
  const content = contentSchema.parse(await readJson(await next('content.json')));
  checkContent(content, flavour);
  const findings: Finding[] = [];
  const schemas = content.schemas.map(({ name }) => name);
  for (const schema of content.schemas) {
    const words = [schema.charset, schema.collation].map((word) => /^\w+$/.exec(word)?.[0] ?? 'utf8mb4');
    await admin.run(`CREATE DATABASE ${quoteName(schema.name)} CHARACTER SET ${words[0]} COLLATE ${words[1]}`);
  }
  const accounts = content.accounts.map((account) => ({ ...account, isLocked: areAccountsLocked || account.isLocked }));
  await loadAccounts(admin, accounts, findings);
  const loader = await makeLoader(admin, login, schemas);
  const session = await Session.open(loader, { flavour, signal });
  try {
    await session.run(loadMode(flavour));
    for (const { schema, name, definition } of content.sequences)
      await define(session, schema, definition, objectOf('sequence', schema, name));
    for (const table of content.tables) {
      const { schema, name } = table;
      const [definition, lost] = withSequences(table, content.sequences);
      await define(session, schema, definition, objectOf('table', schema, name));
      findings.push(
        ...lost.map((reason): Finding => ({ code: 'not_restored', object: objectOf('table', schema, name), reason })),
      );
    }
    const sumsNow: ((dumped: string) => string)[] = [];
    for (const [at, table] of isTrial ? [] : content.tables.entries()) {
      const { violated, sumNow } = await insertRows(session, table, (await next(`data/${at}.rows`)).content);
      sumsNow.push(sumNow);
      const object = (check: string): string =>
        `CHECK ${quoteName(check)} of ${objectOf('table', table.schema, table.name)}`;
      findings.push(
        ...violated.map((check): Finding => ({ code: 'not_restored', object: object(check), reason: checkViolated })),
      );
    }
    for (const { schema, name, next: value } of content.sequences) {
      if (!/^-?\d+$/.test(value)) throw new TransferError('dump_malformed', `sequence ${name}`);
      await session.run(`SELECT SETVAL(${quoteName(schema)}.${quoteName(name)}, ${value}, 0)`);
    }
    const manifest = manifestSchema.parse(await readJson(await next('manifest.json')));
    findings.unshift(...manifest.findings);
    for (const [at, table] of isTrial ? [] : content.tables.entries())
      await compareRows(session, table, sumsNow[at]?.(manifest.tables[at]?.sum ?? '') ?? '');
    findings.push(...tellRefused(content.grants), ...(await loadPrograms(session, admin, content, keepsPastEvents)));
  } finally {
    session.destroy();
    await dropAccount(admin, loader.user).catch(() => undefined);
    // Closing the source releases the snapshot and locks of a dump that comes directly from a server.
    await source.return?.(undefined);
  }
  return { content, findings };
}

async function readJson({ content, path }: Section): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (cause) {
    throw new TransferError('dump_malformed', `${path} cannot be read`, { cause });
  }
}

/** Throws if flavour, schemas or definitions of the dump are refused. Is called before the first statement is sent. */
function checkContent(content: Content, flavour: Flavour): void {
  if (content.flavour !== flavour)
    throw new TransferError('statement_refused', `a dump of ${content.flavour} cannot be loaded into ${flavour}`);
  const known = new Set(content.schemas.map(({ name }) => name));
  for (const { schema, name } of [...content.sequences, ...content.tables, ...content.programs]) {
    if (!known.has(schema)) throw new TransferError('dump_malformed', `${schema}.${name} is in no schema of the dump`);
  }
  for (const { schema, name, definition } of content.sequences)
    checkDefinition('SEQUENCE', definition, objectOf('sequence', schema, name));
  for (const { schema, name, definition } of content.tables)
    checkDefinition('TABLE', definition, objectOf('table', schema, name));
  for (const { kind, schema, name, definition } of content.programs) {
    checkDefinition(kind, definition, objectOf(kind.toLowerCase(), schema, name));
  }
}

const checkViolated = 'rows of the table violate it, so that it is not enforced';

const objectOf = (kind: string, schema: string, name: string): string =>
  `${kind} ${quoteName(schema)}.${quoteName(name)}`;

async function define(session: Session, schema: string, definition: string, object: string): Promise<void> {
  await session.run(`USE ${quoteName(schema)}`);
  await session.run(Buffer.from(definition, 'latin1')).catch((error: unknown) => {
    throw asTransferError('load_failed', error, object);
  });
}

/**
 * Returns a name as MariaDB writes it into a column's default: in latin1, with question marks for letters that latin1
 * lacks.
 */
const asWritten = (name: string): string => quoteName(name).replaceAll(/[^\0-\xff]/g, '?');

/**
 * Repairs the names of sequences in columns' defaults. A default is left out if several sequences fit its written name,
 * or none. None fits if the sequence was dropped, which MariaDB allows while a default uses it.
 */
function withSequences(
  { definition }: DumpedTable,
  sequences: Content['sequences'],
): [definition: string, lost: string[]] {
  const lost: string[] = [];
  const counts = ` DEFAULT nextval\\((?<written>${quotedName}\\.${quotedName})\\)`;
  const kept = replaceOutsideQuotes(definition, counts, ({ written }) => {
    const meant = sequences.filter(({ schema, name }) => `${asWritten(schema)}.${asWritten(name)}` === written);
    if (meant.length === 1)
      return (
        ' DEFAULT ' +
        `nextval(${meant.map(({ schema, name }) => bytesOf(`${quoteName(schema)}.${quoteName(name)}`)).join('')})`
      );
    lost.push(`a column has no default any more: there is no one sequence ${written}`);
    return '';
  });
  return [kept, lost];
}

const bytesOf = (text: string): string => Buffer.from(text).toString('latin1');

async function compareRows(session: Session, table: DumpedTable, wanted: string): Promise<void> {
  if (!hasOwnRows(table)) return;
  const types = await columnTypes(session, table);
  const sum = new RowSum();
  const selects = table.columns.map(({ name }) => selectOf(name, types.get(name) ?? ''));
  await session.run('START TRANSACTION');
  for await (const _ of readRows(session, { ...table, selects }, sum));
  await session.run('COMMIT');
  const object = objectOf('table', table.schema, table.name);
  if (sum.sum !== wanted) throw new TransferError('rows_differ', `${object} has other rows than the dump`, { object });
}

async function columnTypes(session: Session, { schema, name }: DumpedTable): Promise<Map<string, string>> {
  const rows = await session.texts(
    `SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE ${isName('TABLE_SCHEMA', schema)} ` +
      `AND ${isName('TABLE_NAME', name)}`,
  );
  return new Map(rows.map(([column, type]) => [column ?? '', type ?? '']));
}

const order: readonly DumpedProgram['kind'][] = [
  'PACKAGE',
  'PACKAGE BODY',
  'FUNCTION',
  'PROCEDURE',
  'VIEW',
  'TRIGGER',
  'EVENT',
];

/**
 * Creates programs and grants rights. A view needs other views, functions and rights, and a right needs its object. So
 * everything that failed is tried again until a round brings no success. Returns findings for everything that failed in
 * that round.
 */
async function loadPrograms(
  session: Session,
  admin: Session,
  { programs, grants, release }: Content,
  keepsPastEvents: boolean,
): Promise<Finding[]> {
  let left = order.flatMap((kind) => programs.filter((program) => program.kind === kind));
  let rights: LeftGrant[] = await loadGrants(admin, grants, release);
  for (;;) {
    const failed: { program: DumpedProgram; error: TransferError }[] = [];
    for (const program of left) {
      await loadProgram(session, program, keepsPastEvents).catch((error: unknown) =>
        failed.push({ program, error: asTransferError('load_failed', error) }),
      );
    }
    const broken = failed.find(({ error }) => error.code === 'unavailable');
    if (broken !== undefined) throw broken.error;
    const rightsLeft = await loadGrants(
      admin,
      rights.map(({ grant }) => grant),
      release,
    );
    const isDone = failed.length === left.length && rightsLeft.length === rights.length;
    left = failed.map(({ program }) => program);
    rights = rightsLeft;
    if (!isDone) continue;
    const findings = failed.map(({ program: { kind, schema, name }, error }): Finding => {
      const code = kind === 'VIEW' ? 'view_broken' : 'not_restored';
      return { code, object: objectOf(kind.toLowerCase(), schema, name), reason: error.reason };
    });
    return [...findings, ...(await removeMisnamed(session, programs, left)), ...tellLeft(rights)];
  }
}

const programNames = `SELECT ROUTINE_TYPE, ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES
  UNION ALL SELECT 'TRIGGER', TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS
  UNION ALL SELECT 'EVENT', EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS`;

/**
 * Drops programs that got a wrong name, and returns a finding for each program that is missing under its own name. A
 * gbk character may end with the byte of a backtick, and MySQL then misreads a quoted name that also has a real
 * backtick.
 */
async function removeMisnamed(
  session: Session,
  programs: readonly DumpedProgram[],
  failed: readonly DumpedProgram[],
): Promise<Finding[]> {
  const nameOf = ({ kind, schema, name }: DumpedProgram): string => objectOf(kind.toLowerCase(), schema, name);
  const made = new Set(programs.filter((program) => program.kind !== 'VIEW' && !failed.includes(program)).map(nameOf));
  const schemas = new Set(programs.map(({ schema }) => schema));
  const listed = (await session.texts(programNames)).map((row) => row.map((value) => value ?? ''));
  const there = new Map(
    listed
      .filter(([, schema = '']) => schemas.has(schema))
      .map(([kind = '', schema = '', name = '']) => [
        objectOf(kind.toLowerCase(), schema, name),
        `DROP ${kind} IF EXISTS ${quoteName(schema)}.${quoteName(name)}`,
      ]),
  );
  for (const [object, drop] of there) if (!made.has(object)) await session.run(drop);
  const lost = [...made].filter((object) => !there.has(object));
  return lost.map((object) => ({ code: 'not_restored', object, reason: 'the server reads its name as another one' }));
}

/**
 * ER_EVENT_CANNOT_CREATE_IN_THE_PAST: a note with which CREATE EVENT succeeds and creates nothing, because the time of
 * a one-time event has passed.
 */
const notCreatedCode = '1588';

/** Creates a program with its original session's settings, which are a part of it. */
async function loadProgram(
  session: Session,
  { kind, schema, definition, sqlMode, charset, collation, timeZone }: DumpedProgram,
  keepsPastEvents: boolean,
): Promise<void> {
  const word = (text: string): string => quoteLiteral(/^[\w ,+:/-]*$/.exec(text)?.[0] ?? '');
  await session.run(`USE ${quoteName(schema)}`);
  await session.run(`SET SESSION sql_mode = ${word(sqlMode)}`);
  await session.run(`SET SESSION character_set_client = ${word(charset)}`);
  await session.run(
    `SET SESSION collation_connection = ${collation === '' ? "'utf8mb4_general_ci'" : word(collation)}`,
  );
  if (timeZone !== null) await session.run(`SET SESSION time_zone = ${word(timeZone)}`);
  const create = Buffer.from(definition, 'latin1');
  try {
    await session.run(create);
    if (kind !== 'EVENT' || !(await session.texts('SHOW WARNINGS')).some(([, code]) => code === notCreatedCode)) return;
    if (!keepsPastEvents) throw new TransferError('statement_refused', 'the time of the event has passed');
    // The session's clock is set to 1970, so that the event is in the future.
    await session.run('SET SESSION timestamp = 1');
    await session.run(create);
  } finally {
    if (keepsPastEvents) await session.run('SET SESSION timestamp = DEFAULT');
    await session.run('SET NAMES utf8mb4');
    await session.run('SET character_set_results = NULL');
    await session.run(loadMode(session.flavour));
    await session.run("SET SESSION time_zone = '+00:00'");
  }
}
