import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseDescription } from '@drydock/agent/database';
import { flavourOf, type Major } from '@drydock/contracts/databases/major';
import { listProcessesIn, settleHome } from '@drydock/process';
import mysql, { type Connection } from 'mysql2/promise';
import { instanceFolder, ownerPassword, type TestHost } from './host';

/** Connects as a customer of MariaDB does: to the public address, over TLS with a check of the certificate. */
export async function connectCustomer(
  { host, port, ca_certificate: ca }: DatabaseDescription,
  change: object = {},
): Promise<Connection> {
  const login = { user: 'shop_owner', password: ownerPassword, database: 'shop' };
  const client = await mysql.createConnection({ host, port, ...login, ssl: { ca }, connectTimeout: 30_000, ...change });
  client.on('error', () => undefined);
  return client;
}

/** Runs statements one after the other in a new session. Resolves with the answer to the last one. */
export async function askCustomer(database: DatabaseDescription, ...statements: string[]): Promise<unknown> {
  const client = await connectCustomer(database);
  try {
    let rows: unknown = [];
    for (const statement of statements) [rows] = await client.query(statement);
    return rows;
  } finally {
    client.destroy();
  }
}

/**
 * Runs statements as the agent does, in a session of the administrator that is in no binary log. The login is read from
 * the agent's own files, because no call returns it.
 */
export async function askAdmin(
  host: TestHost,
  databaseId: string,
  which: 'old' | 'target' | undefined,
  ...statements: string[]
): Promise<void> {
  const { home } = settleHome(instanceFolder(host, databaseId, which));
  const noted = path.join(home, 'socket.txt');
  const socketFolder = existsSync(noted) ? readFileSync(noted, 'utf8').trim() : path.join(home, 'socket');
  const client = await mysql.createConnection({
    socketPath: path.join(socketFolder, 'mysql.sock'),
    user: 'root',
    password: readFileSync(path.join(home, 'password'), 'utf8').trim(),
  });
  try {
    for (const statement of ['set session sql_log_bin = 0', ...statements]) await client.query(statement);
  } finally {
    client.destroy();
  }
}

export function killMysql(host: TestHost, databaseId: string, version: Major, which?: 'old' | 'target'): void {
  const { home } = settleHome(instanceFolder(host, databaseId, which));
  const pids = listProcessesIn(path.join(home, `${flavourOf(version)}-${version}`, 'data'));
  if (pids.length === 0) throw new Error('no server works there');
  for (const pid of pids) process.kill(pid, 'SIGKILL');
}
