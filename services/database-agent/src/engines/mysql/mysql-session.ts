import { DatabaseHostError } from '@drydock/agent/database';
import { flavourOf, type Major, programsOf } from '@drydock/contracts/databases/major';
import { findEngine, listEngines, type Engine as Programs } from '@drydock/mysql';
import mysql from 'mysql2/promise';
import { z } from 'zod';

/** A name in a statement. */
export const quoteName = (name: string): string => mysql.escapeId(name, true);
/** A text in a statement. */
export const quoteText = (text: string): string => mysql.escape(text);

const connectMs = 10_000;

export interface MysqlSession {
  run(statement: string): Promise<void>;
  read<Row>(row: z.ZodType<Row>, statement: string): Promise<Row[]>;
  close(): Promise<void>;
}

/** A session of the administrator, by the Unix socket that the URL names. */
export async function openMysql(adminUrl: string): Promise<MysqlSession> {
  const connection = await mysql.createConnection({ ...loginOf(adminUrl), connectTimeout: connectMs });
  connection.on('error', () => undefined);
  // Accounts are not replicated: a replica that got the lock of the old instance's account would be locked with it.
  await connection.query('set session sql_log_bin = 0');
  return {
    run: async (statement) => void (await connection.query(statement)),
    read: async (row, statement) => {
      const [rows] = await connection.query(statement);
      return z.array(row).parse(rows);
    },
    close: async () => connection.destroy(),
  };
}

export async function withMysql<T>(adminUrl: string, work: (session: MysqlSession) => Promise<T>): Promise<T> {
  const session = await openMysql(adminUrl);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

/** An account, and the socket of its server. */
export interface MysqlLogin {
  socketPath: string;
  user: string;
  password: string;
}

export function loginOf(adminUrl: string): MysqlLogin {
  const { searchParams, username, password } = new URL(adminUrl);
  return {
    socketPath: searchParams.get('socketPath') ?? '',
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

/** The URL of `root@localhost` at a socket, in the form that {@link openMysql} takes. */
export const mysqlUrl = ({ socketPath, user, password }: MysqlLogin): string =>
  `mysql://${encodeURIComponent(user)}:${encodeURIComponent(password)}@localhost/` +
  `?socketPath=${encodeURIComponent(socketPath)}`;

/** The majors whose programs were fetched or are installed. */
export const installedMysqlMajors = async (): Promise<Major[]> => (await listEngines()).map(({ version }) => version);

/** Throws `major_not_installed`. */
export async function findPrograms(major: Major): Promise<Programs> {
  const flavour = flavourOf(major);
  if (flavour === 'postgres') throw new Error(`${major} is no major of MySQL's`);
  try {
    return await findEngine(flavour, String(major));
  } catch (error) {
    throw new DatabaseHostError('major_not_installed', `the programs of ${programsOf(major)} are not installed here`, {
      cause: error,
    });
  }
}
