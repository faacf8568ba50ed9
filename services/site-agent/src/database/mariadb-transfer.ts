import { findingsOfMysql } from '@drydock/agent/database';
import { entriesInTurn } from '@drydock/archive';
import { dumpDatabase, emptyServer, loadDatabase, openAdmin, TransferError } from '@drydock/mysql';
import { createConnection, escapeId } from 'mysql2/promise';
import type { SiteTransfer } from './postgres-transfer';

const answerMs = 30_000;
const unknownTable: ReadonlySet<unknown> = new Set(['ER_NO_SUCH_TABLE', 'ER_BAD_DB_ERROR']);

export const transfer: SiteTransfer = {
  dump(database, signal) {
    if (database.engine !== 'mariadb') throw new Error('the database is not of MariaDB');
    const { login, engine, release } = database;
    return dumpDatabase({ admin: login, flavour: engine, release, signal });
  },

  /**
   * Empties the server first. A new server already has the database and the account, and the dump contains them too.
   */
  async load(database, entries, signal) {
    if (database.engine !== 'mariadb') throw new Error('the database is not of MariaDB');
    const { login, engine } = database;
    const admin = await openAdmin(login, engine);
    try {
      await emptyServer(admin);
    } finally {
      await admin.close();
    }
    const { findings } = await loadDatabase({
      admin: login,
      flavour: engine,
      sections: entriesInTurn(entries),
      areAccountsLocked: true,
      signal,
    });
    return [...findingsOfMysql(findings)];
  },

  async countRows(uri, { schema, name }) {
    const connection = await createConnection({ uri, connectTimeout: answerMs, rowsAsArray: true });
    connection.on('error', () => undefined);
    try {
      const sql = `SELECT count(*) FROM ${escapeId(schema, true)}.${escapeId(name, true)}`;
      const [rows] = await connection.query({ sql, timeout: answerMs });
      const [[count] = []] = rows as unknown[][];
      return Number(count);
    } catch (error) {
      if (error instanceof Error && 'code' in error && unknownTable.has(error.code)) return null;
      throw error;
    } finally {
      connection.destroy();
    }
  },

  failureOf: (error) => (error instanceof TransferError ? error : null),
};
