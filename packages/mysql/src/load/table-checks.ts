import { hasOwnRows } from '../dump/list-content';
import type { DumpedTable } from '../dump/manifest';
import { isName, quoteName, type Session } from '../session/session';

const isViolation = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ER_CHECK_CONSTRAINT_VIOLATED';

/**
 * The CHECKs of a MySQL table. Unlike in MariaDB, no setting of a session turns them off. They accepted a row under the
 * settings of the session that wrote it, such as its time zone, and may refuse it under ours. Then they are turned off
 * until all rows are loaded. Those that the rows violate even then stay off.
 */
export class TableChecks {
  private readonly session: Session;
  private readonly table: DumpedTable;
  private putOff: string[] = [];

  private constructor(session: Session, table: DumpedTable) {
    this.session = session;
    this.table = table;
  }

  static async of(session: Session, table: DumpedTable): Promise<TableChecks> {
    const checks = new TableChecks(session, table);
    // A statement that fails leaves some of its rows in the table.
    const isHalfWritten = table.engine !== 'InnoDB' && hasOwnRows(table) && table.definition.includes(' CHECK (');
    if (session.flavour === 'mysql' && isHalfWritten) await checks.putAllOff();
    return checks;
  }

  /** Runs a statement that writes rows. */
  async write(statement: string): Promise<void> {
    try {
      await this.session.run(statement);
    } catch (error) {
      if (!isViolation(error) || this.putOff.length > 0) throw error;
      await this.putAllOff();
      await this.session.run(statement);
    }
  }

  /** Enforces again the CHECKs that all rows satisfy. Returns the names of the others. */
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
