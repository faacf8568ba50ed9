import { randomBytes } from 'node:crypto';
import { runSql } from '@drydock/test-kit/run-sql';
import { readSharedCluster, withDatabase } from '@drydock/test-kit/test-cluster';

export interface OwnedDatabase {
  /** As the unprivileged role that owns it. */
  url: string;
  adminUrl: string;
  name: string;
}

/** Runs SQL as the superuser of the shared test cluster. */
export const runAsAdmin = <Row>(sql: string, values?: unknown[]): Promise<Row[]> => runSql(readSharedCluster().adminUrl, sql, values);

/** A fresh database with a login role of its own that owns it and nothing else. */
export async function createOwnedDatabase(): Promise<OwnedDatabase> {
  const { adminUrl: clusterUrl } = readSharedCluster();
  const name = `t_${randomBytes(6).toString('hex')}`;
  await runSql(clusterUrl, `create role ${name} login password 'owner-password'`);
  await runSql(clusterUrl, `create database ${name} owner ${name} template template0`);
  const url = new URL(withDatabase(clusterUrl, name));
  const adminUrl = url.href;
  url.username = name;
  url.password = 'owner-password';
  return { url: url.href, adminUrl, name };
}
