import { listFetched } from '@drydock/mysql';
import mysql, { type Connection } from 'mysql2/promise';

/** The fetched versions of MariaDB and MySQL. The agent searches the same folders, so it offers these versions. */
export const fetchedEngines = listFetched();

export const mariadbVersions: readonly string[] = fetchedEngines
  .filter(({ flavour }) => flavour === 'mariadb')
  .map(({ version }) => version);

export interface MysqlAddress {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
}

export function mysqlAddressOf(url: string): MysqlAddress {
  const { hostname: host, port, username: user, password, pathname } = new URL(url);
  return { host, port: Number(port), user, password: decodeURIComponent(password), database: pathname.slice(1) };
}

export type SqlRow = Record<string, unknown>;

/** Connects over TLS, as a customer does. */
export async function withMysqlClient<T>(address: MysqlAddress, work: (client: Connection) => Promise<T>): Promise<T> {
  const client = await mysql.createConnection({
    ...address,
    ssl: { rejectUnauthorized: false },
    connectTimeout: 30_000,
  });
  client.on('error', () => undefined);
  try {
    return await work(client);
  } finally {
    client.destroy();
  }
}

/** Runs statements and resolves with the rows of the last one. */
export const askMysql = (address: MysqlAddress, ...statements: string[]): Promise<SqlRow[]> =>
  withMysqlClient(address, async (client) => {
    let rows: unknown = [];
    for (const statement of statements) [rows] = await client.query(statement);
    return Array.isArray(rows) ? (rows as SqlRow[]) : [];
  });

/** The code of the error with which the work fails, or `done`. */
export const codeOfMysql = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  );
