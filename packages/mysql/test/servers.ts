import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import mysql, { type Connection, type ConnectionOptions } from 'mysql2/promise';
import type { Engine } from '../src/engines/list-engines';
import { type MysqlOptions, type MysqlServer, startMysql } from '../src/server/mysql';

/** A folder that the account of a server can walk to. */
export function serverFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-mysql-'));
  fs.chmodSync(folder, 0o711);
  return folder;
}

/** Servers of one suite, ended and removed together. */
export class Servers {
  private readonly started: { server: MysqlServer; folder: string }[] = [];

  async start(engine: Engine, options: Partial<MysqlOptions> = {}): Promise<MysqlServer> {
    const folder = options.folder ?? serverFolder();
    const server = await startMysql({ engine, ...options, folder });
    this.started.push({ server, folder });
    return server;
  }

  async close(): Promise<void> {
    for (const { server, folder } of this.started.splice(0)) {
      await server.stop();
      fs.rmSync(folder, { recursive: true, force: true });
    }
  }
}

/** Runs statements one after the other in a session of their own; gives the rows of the last one. */
export async function ask(login: ConnectionOptions, ...statements: readonly string[]): Promise<unknown[]> {
  const connection = await mysql.createConnection({ ...login, flags: ['-IGNORE_SPACE'] });
  try {
    let rows: unknown = [];
    for (const statement of statements) [rows] = await connection.query(statement);
    return Array.isArray(rows) ? rows : [];
  } finally {
    await closeQuietly(connection);
  }
}

/** The server may have gone. */
export async function closeQuietly(connection: Connection): Promise<void> {
  await connection.end().catch(() => undefined);
}
