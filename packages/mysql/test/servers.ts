import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findFreePort, serverAccount } from '@drydock/process';
import mysql, { type Connection, type ConnectionOptions } from 'mysql2/promise';
import type { Engine } from '../src/engines/list-engines';
import { type MysqlOptions, type MysqlServer, startMysql } from '../src/server/mysql';

/** Creates a folder that the account of a server can enter. */
export function serverFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-mysql-'));
  fs.chmodSync(folder, 0o711);
  return folder;
}

/** The servers of one suite, which are ended and removed together. */
export class Servers {
  private readonly started: { server: MysqlServer; folder: string }[] = [];
  private pair: { certificate: string; key: string } | null = null;

  async start(engine: Engine, options: Partial<MysqlOptions> = {}): Promise<MysqlServer> {
    const folder = options.folder ?? serverFolder();
    const server = await startMysql({ engine, ...options, folder });
    this.started.push({ server, folder });
    return server;
  }

  /**
   * Starts a server that can be either end of a replication, with TLS on loopback. All servers of a suite share a
   * certificate.
   */
  async startReplicable(engine: Engine, account: number): Promise<MysqlServer> {
    const [folder, port] = [serverFolder(), await findFreePort()];
    const pair = this.pair ?? makeCertificate(serverFolder(), account);
    this.pair = pair;
    const tls = { ...pair, authority: pair.certificate };
    return this.start(engine, { folder, account, listen: { address: '127.0.0.1', port, tls }, serverId: port });
  }

  async close(): Promise<void> {
    for (const { server, folder } of this.started.splice(0)) {
      await server.stop();
      fs.rmSync(folder, { recursive: true, force: true });
    }
  }
}

/** Runs statements one after the other in a session of their own. Returns the rows of the last one. */
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

/** Closes a connection whose server may have ended. */
export async function closeQuietly(connection: Connection): Promise<void> {
  await connection.end().catch(() => undefined);
}

/** Creates a self-signed certificate for loopback. */
export function makeCertificate(folder: string, account: number): { certificate: string; key: string } {
  const [certificate, key] = ['certificate.pem', 'key.pem'].map((name) => path.join(folder, name)) as [string, string];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const args = [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '1',
    '-keyout',
    key,
    '-out',
    certificate,
    ...subject,
  ];
  execFileSync('openssl', args, { stdio: 'ignore' });
  const { uid } = serverAccount(account);
  if (uid !== undefined) fs.chownSync(key, uid, uid);
  return { certificate, key };
}
