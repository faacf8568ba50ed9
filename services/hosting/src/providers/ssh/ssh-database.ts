import type { DatabaseEngine } from './remote-scripts';
import type { SshConfig } from './ssh-tools';

/** A host's database server, as the host reaches it. */
export interface DatabaseServer {
  engine: DatabaseEngine;
  host: string;
  port: string;
  user: string;
  password: string;
}

const defaultPort: Readonly<Record<DatabaseEngine, string>> = { postgres: '5432', mysql: '3306' };

export function databaseServerOf({ database_admin_url: url }: Pick<SshConfig, 'database_admin_url'>): DatabaseServer {
  const { protocol, hostname, port, username, password } = new URL(url);
  const engine = protocol.startsWith('postgres') ? 'postgres' : 'mysql';
  return {
    engine,
    // An IPv6 address stands in brackets in a URL only.
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? defaultPort[engine] : port,
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}
