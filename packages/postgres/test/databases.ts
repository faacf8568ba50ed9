import { randomBytes } from 'node:crypto';
import { loginUrl, makeLoader, makeReader } from '../src/session/transfer-roles';
import { runSql, withClient } from '../src/testing/run-sql';
import { statementsOf } from '../src/testing/schema-corpus';
import { readSharedCluster, withDatabase } from '../src/testing/test-cluster';

export interface OwnedDatabase {
  /** The URL of a role that may read everything. */
  readerUrl: string;
  /** The URL of a role that acts as the owner, for a load. */
  loader: { url: string; role: string };
  /** The URL of the unprivileged role that owns the database. */
  url: string;
  adminUrl: string;
  name: string;
}

/** Runs SQL as the superuser of the shared test cluster. */
export const runAsAdmin = <Row>(sql: string, values?: unknown[]): Promise<Row[]> =>
  runSql(readSharedCluster().adminUrl, sql, values);

/** Creates a database, a login that owns only this database, and the roles that dump and load it. */
export async function createOwnedDatabase(): Promise<OwnedDatabase> {
  const { adminUrl: clusterUrl } = readSharedCluster();
  const name = `t_${randomBytes(6).toString('hex')}`;
  await runSql(clusterUrl, `create role ${name} login password 'owner-password'`);
  await runSql(clusterUrl, `create database ${name} owner ${name} template template0`);
  const url = new URL(withDatabase(clusterUrl, name));
  const adminUrl = url.href;
  url.username = name;
  url.password = 'owner-password';
  await runSql(clusterUrl, `revoke connect on database ${name} from public`);
  const logins = await withClient(clusterUrl, async (admin) => ({
    reader: await makeReader({ admin, database: name, tag: 'test' }),
    loader: await makeLoader({ admin, database: name, owner: name, tag: 'test' }),
  }));
  const readerUrl = loginUrl(clusterUrl, logins.reader, name);
  return {
    url: url.href,
    adminUrl,
    name,
    readerUrl,
    loader: { url: loginUrl(clusterUrl, logins.loader, name), role: name },
  };
}

/** Returns the statements of a database whose owner has the database's name (see {@link statementsOf}). */
export const dumpedStatements = ({ readerUrl, name }: OwnedDatabase): Promise<string[]> =>
  statementsOf(readerUrl, name);
