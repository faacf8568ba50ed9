import type { Flavour } from '../engines/list-engines';
import { isName, type Login, quoteName, Session } from '../session/session';
import { asTransferError, TransferError } from '../session/transfer-error';
import { listAccounts } from './list-accounts';
import { beginSnapshot, hasOwnRows, type ListedTable, listContent } from './list-content';
import type { Content, Finding, Manifest, Section, TableSum } from './manifest';
import { encodeRows, RowSum } from './row-format';
import { dropAccount, listSchemas, makeReader, openAdmin } from './transfer-account';

export interface DumpOptions {
  /**
   * The login of `root@localhost`. It creates and drops the account that reads definitions and rows. Apart from this,
   * the login only lists schemas, accounts and rights.
   */
  admin: Login;
  flavour: Flavour;
  release: string;
  /** True to dump only the definitions. Every table of the dump is then empty. */
  isSchemaOnly?: boolean;
  signal?: AbortSignal;
}

const chunkBytes = 64 * 1024;

/**
 * Dumps all schemas of the customer, with accounts and rights, as sections that must be read in order. All InnoDB
 * tables are from the same moment. The rows are read by an account that cannot change rows, in a read-only transaction.
 * So nothing changes even if a view that has replaced a table runs code of the customer. The dump fails if a table's
 * definition changes before the table's rows are read. Another attempt may then succeed.
 * @throws TransferError
 */
export async function* dumpDatabase(options: DumpOptions): AsyncGenerator<Section> {
  const { flavour, signal } = options;
  const admin = await openAdmin(options.admin, flavour, signal);
  let login: Login | null = null;
  const sessions: Session[] = [];
  try {
    const schemas = await listSchemas(admin);
    login = await makeReader(
      admin,
      options.admin,
      schemas.map(({ name }) => name),
    );
    const rows = await Session.open(login, { flavour, signal });
    sessions.push(rows);
    const definitions = await Session.open(login, { flavour, signal });
    sessions.push(definitions);
    const gtid = await beginSnapshot(rows);
    const content: Content = {
      format: 1,
      flavour,
      release: options.release,
      gtid,
      schemas,
      sequences: [],
      tables: [],
      programs: [],
      accounts: [],
      grants: [],
    };
    const findings: Finding[] = [];
    const tables: ListedTable[] = [];
    for (const { name } of schemas) {
      const found = await listContent(definitions, rows, name);
      content.sequences.push(...found.sequences);
      content.programs.push(...found.programs);
      tables.push(...found.tables);
      findings.push(...found.findings);
    }
    content.tables = tables.map(({ schema, name, engine, columns, definition }) => ({
      schema,
      name,
      engine,
      columns,
      definition,
    }));
    Object.assign(content, await listAccounts(admin));
    yield { path: 'content.json', content: asJson(content) };
    const manifest: Manifest = { format: 1, tables: [], findings };
    for (const [at, table] of tables.entries()) {
      const sum = new RowSum();
      const isEmpty = options.isSchemaOnly === true || !hasOwnRows(table);
      yield { path: `data/${at}.rows`, content: isEmpty ? noBytes() : readRows(rows, table, sum) };
      manifest.tables.push(sumOf(table, sum));
    }
    yield { path: 'manifest.json', content: asJson(manifest) };
  } catch (error) {
    throw asTransferError('dump_failed', error);
  } finally {
    for (const session of sessions) session.destroy();
    if (login !== null) await dropAccount(admin, login.user).catch(() => undefined);
    await admin.close();
  }
}

const sumOf = ({ schema, name }: { schema: string; name: string }, { rows, bytes, sum }: RowSum): TableSum => ({
  schema,
  name,
  rows,
  bytes,
  sum,
});

async function* noBytes(): AsyncGenerator<Buffer> {}

async function* asJson(value: unknown): AsyncGenerator<Buffer> {
  yield Buffer.from(JSON.stringify(value));
}

/**
 * Locks a table's definition until the session rolls back to the savepoint `drydock`. Throws if the name does not
 * belong to a table any more. If a view has replaced the table, taking the lock may run functions of the customer.
 * Where a customer can replace tables, the session must therefore be in the read-only transaction of `beginReading`.
 */
export async function holdTable(session: Session, table: { schema: string; name: string }): Promise<void> {
  const name = `${quoteName(table.schema)}.${quoteName(table.name)}`;
  await session.run('SAVEPOINT drydock');
  await session.run(`SELECT 1 FROM ${name} LIMIT 0`);
  const [[type] = []] = await session.texts(
    `SELECT TABLE_TYPE FROM information_schema.TABLES WHERE ${isName('TABLE_SCHEMA', table.schema)} ` +
      `AND ${isName('TABLE_NAME', table.name)}`,
  );
  if (type !== 'BASE TABLE' && type !== 'SYSTEM VERSIONED')
    throw new TransferError('dump_failed', `table ${name} is no table any more`);
}

export async function* readRows(
  session: Session,
  table: Pick<ListedTable, 'schema' | 'name' | 'selects'>,
  sum: RowSum,
): AsyncGenerator<Buffer> {
  const name = `${quoteName(table.schema)}.${quoteName(table.name)}`;
  try {
    await holdTable(session, table);
    // A table may have only generated columns, which are not dumped. `SELECT 1` then gives its number of rows.
    const select = `SELECT ${table.selects.length === 0 ? '1' : table.selects.join(', ')} FROM ${name}`;
    for await (const rows of session.batches(select, chunkBytes)) yield encodeRows(rows, sum);
    await session.run('ROLLBACK TO SAVEPOINT drydock');
  } catch (error) {
    throw asTransferError('dump_failed', error, `table ${name}`);
  }
}
