import { hasOwnRows } from '../dump/list-content';
import type { ColumnKind, DumpedTable } from '../dump/manifest';
import { decodeRows, encodeRows, exchangeRows, RowSum } from '../dump/row-format';
import { isName, quoteName, type RawRow, type Session } from '../session/session';
import { asTransferError, TransferError } from '../session/transfer-error';

/** An INSERT statement is sent once its values have this many characters. */
const statementBytes = 512 * 1024;
const numberText = /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?$/i;
/** A zero with a sign, which a DOUBLE may have. */
const negativeZeroText = /^-0+(?:\.0*)?$/;
/** Without an exponent the literal would be an exact number, and an exact zero has no sign. */
const negativeZero = '-0e0';
const asciiText = /^[\w:.\- ]*$/;

interface Inserted {
  /** The names of CHECKs that the rows violate. A violated CHECK is no longer enforced. */
  violated: string[];
  /** Returns the sum of the table's rows as they are now, from their sum in the dump. */
  sumNow: (dumped: string) => string;
}

/** Inserts the rows of a section into a table without triggers. */
export async function insertRows(
  session: Session,
  table: DumpedTable,
  content: AsyncIterable<Buffer>,
): Promise<Inserted> {
  const object = `table ${quoteName(table.schema)}.${quoteName(table.name)}`;
  const kinds = table.columns.map(({ kind }) => kind);
  const columns = table.columns.map(({ name }) => quoteName(name)).join(',');
  const checks = await TableChecks.of(session, table);
  const signs = await ZeroSigns.of(session);
  const head = `INSERT INTO ${quoteName(table.schema)}.${quoteName(table.name)} (${columns}) VALUES `;
  let values: string[] = [];
  let held = 0;
  let written: Promise<void> = Promise.resolve();
  // The server executes a statement while this process builds the next one.
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
        const literals = kinds.map((kind, at) => literalOf(kind, row[at] ?? null));
        signs.note(row, literals);
        const literal = `(${literals.join(',')})`;
        values.push(literal);
        held += literal.length;
        if (held >= statementBytes) await flush();
      }
    await flush();
    await written;
    await session.run('COMMIT');
    await session.run('SET SESSION autocommit = 1');
    return { violated: await checks.enforce(), sumNow: (dumped) => signs.sumNow(dumped) };
  } catch (error) {
    throw asTransferError('load_failed', error, object);
  }
}

/**
 * Returns a value's literal. Numbers and times are validated, because they are inserted unchanged. Other values are
 * hexadecimal.
 */
function literalOf(kind: ColumnKind, value: Buffer | null): string {
  if (value === null) return 'NULL';
  if (kind === 'bytes') return value.length === 0 ? "''" : `X'${value.toString('hex')}'`;
  if (kind === 'json') return `CONVERT(X'${value.toString('hex')}' USING utf8mb4)`;
  const text = value.toString('latin1');
  if (!(kind === 'number' ? numberText : asciiText).test(text))
    throw new TransferError('dump_malformed', `${kind} ${JSON.stringify(text.slice(0, 40))}`);
  if (kind !== 'number') return `'${text}'`;
  return negativeZeroText.test(text) ? negativeZero : text;
}

/**
 * The rows with a negative zero, on a server that stores it without its sign, as MariaDB 10.11 and newer do. There the
 * sum of these rows differs from the dump's.
 */
class ZeroSigns {
  private readonly areKept: boolean;
  private readonly dumped = new RowSum();
  private readonly stored = new RowSum();

  private constructor(areKept: boolean) {
    this.areKept = areKept;
  }

  static async of(session: Session): Promise<ZeroSigns> {
    const [[zero] = []] = await session.texts(`SELECT CONCAT(${negativeZero})`);
    return new ZeroSigns(zero?.startsWith('-') === true);
  }

  /** Notes a row that is about to be inserted with these literals. */
  note(row: RawRow, literals: readonly string[]): void {
    if (this.areKept || !literals.includes(negativeZero)) return;
    encodeRows([row], this.dumped);
    const stored = row.map((value, at) => (literals[at] === negativeZero ? (value?.subarray(1) ?? null) : value));
    encodeRows([stored], this.stored);
  }

  sumNow(dumped: string): string {
    if (this.stored.rows === 0) return dumped;
    return exchangeRows(dumped, this.dumped, this.stored);
  }
}

const isViolation = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ER_CHECK_CONSTRAINT_VIOLATED';

/**
 * The CHECKs of a MySQL table. A row was accepted under the settings of the customer's session, such as the time zone,
 * and may be refused under the loader's settings. MySQL has no setting that turns all CHECKs off. So the CHECKs of a
 * table are turned off when they refuse a row, and on again after the last row. CHECKs that the rows still violate stay
 * off.
 */
class TableChecks {
  private readonly session: Session;
  private readonly table: DumpedTable;
  private putOff: string[] = [];

  private constructor(session: Session, table: DumpedTable) {
    this.session = session;
    this.table = table;
  }

  static async of(session: Session, table: DumpedTable): Promise<TableChecks> {
    const checks = new TableChecks(session, table);
    // A failed INSERT leaves rows in a table without transactions, so the CHECKs are turned off before the first
    // INSERT.
    const isHalfWritten = table.engine !== 'InnoDB' && hasOwnRows(table) && table.definition.includes(' CHECK (');
    if (session.flavour === 'mysql' && isHalfWritten) await checks.putAllOff();
    return checks;
  }

  /** Runs an INSERT. If a CHECK refuses it, turns all CHECKs of the table off and runs it again. */
  async write(statement: string): Promise<void> {
    try {
      await this.session.run(statement);
    } catch (error) {
      if (!isViolation(error) || this.putOff.length > 0) throw error;
      await this.putAllOff();
      await this.session.run(statement);
    }
  }

  /** Enforces the CHECKs again. Returns the names of those that the rows violate. */
  async enforce(): Promise<string[]> {
    const violated: string[] = [];
    for (const check of this.putOff) {
      await this.alter(check, 'ENFORCED').catch((error: unknown) => {
        if (!isViolation(error)) throw error;
        violated.push(check);
      });
    }
    return violated;
  }

  private async putAllOff(): Promise<void> {
    const { schema, name } = this.table;
    const enforced = await this.session.texts(
      `SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS
        WHERE CONSTRAINT_TYPE = 'CHECK' AND ENFORCED = 'YES'
        AND ${isName('TABLE_SCHEMA', schema)} AND ${isName('TABLE_NAME', name)}`,
    );
    this.putOff = enforced.map(([check]) => check ?? '');
    for (const check of this.putOff) await this.alter(check, 'NOT ENFORCED');
  }

  private async alter(check: string, state: 'ENFORCED' | 'NOT ENFORCED'): Promise<void> {
    const table = `${quoteName(this.table.schema)}.${quoteName(this.table.name)}`;
    await this.session.run(`ALTER TABLE ${table} ALTER CHECK ${quoteName(check)} ${state}`);
  }
}
