import type { ColumnKind, DumpedTable } from '../dump/manifest';
import { decodeRows } from '../dump/row-format';
import { quoteName, type Session } from '../session/session';
import { asTransferError, TransferError } from '../session/transfer-error';
import { TableChecks } from './table-checks';

/** The size of a statement. A single row may be larger. */
const statementBytes = 512 * 1024;
const numberText = /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?$/i;
const asciiText = /^[\w:.\- ]*$/;

/**
 * Inserts the rows of a section into a table that has no trigger yet. Returns the names of CHECKs that the rows
 * violate, and which are therefore no longer enforced.
 */
export async function insertRows(
  session: Session,
  table: DumpedTable,
  content: AsyncIterable<Buffer>,
): Promise<string[]> {
  const object = `table ${quoteName(table.schema)}.${quoteName(table.name)}`;
  const kinds = table.columns.map(({ kind }) => kind);
  const columns = table.columns.map(({ name }) => quoteName(name)).join(',');
  const checks = await TableChecks.of(session, table);
  const head = `INSERT INTO ${quoteName(table.schema)}.${quoteName(table.name)} (${columns}) VALUES `;
  let values: string[] = [];
  let held = 0;
  let written: Promise<void> = Promise.resolve();
  // The server executes one statement while the next one is written.
  const flush = async (): Promise<void> => {
    await written;
    if (values.length > 0) written = checks.write(head + values.join(','));
    written.catch(() => undefined);
    values = [];
    held = 0;
  };
  try {
    await session.run('SET SESSION autocommit = 0');
    for await (const rows of decodeRows(content, Math.max(1, kinds.length)))
      for (const row of rows) {
        const literal = `(${kinds.map((kind, at) => literalOf(kind, row[at] ?? null)).join(',')})`;
        values.push(literal);
        held += literal.length;
        if (held >= statementBytes) await flush();
      }
    await flush();
    await written;
    await session.run('COMMIT');
    await session.run('SET SESSION autocommit = 1');
    return await checks.enforce();
  } catch (error) {
    throw asTransferError('load_failed', error, object);
  }
}

/**
 * A value as it is written in a statement. Numbers and times are validated, because they are written unchanged. All
 * others are hexadecimal.
 */
function literalOf(kind: ColumnKind, value: Buffer | null): string {
  if (value === null) return 'NULL';
  if (kind === 'bytes') return value.length === 0 ? "''" : `X'${value.toString('hex')}'`;
  if (kind === 'json') return `CONVERT(X'${value.toString('hex')}' USING utf8mb4)`;
  const text = value.toString('latin1');
  if (!(kind === 'number' ? numberText : asciiText).test(text))
    throw new TransferError('dump_malformed', `${kind} ${JSON.stringify(text.slice(0, 40))}`);
  return kind === 'number' ? text : `'${text}'`;
}
