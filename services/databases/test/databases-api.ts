import path from 'node:path';
import type { Caller } from '@drydock/service/access';
import { nowhere, type ServiceApi, startServiceApi, type TestedService } from '@drydock/service/testing/service-api';
import { newSecret } from '@drydock/testing/secret';
import { uuidv7 } from 'uuidv7';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';

export const databases: TestedService = {
  name: 'databases',
  dir: path.resolve(__dirname, '..'),
  compose: (environment) => composeApi(readServerConfig(environment)),
};

/**
 * Starts the API without a worker, so that accepted work stays queued, and without a database agent unless `own` names
 * one.
 */
export const startApi = (caller: Caller, own: Record<string, string> = {}): Promise<ServiceApi> =>
  startServiceApi(databases, caller, {
    DATABASE_HOST_URL: `http://${nowhere}`,
    DATABASE_HOST_READER_SECRET: newSecret(),
    ...own,
  });

export interface GivenDatabase {
  label?: string;
  status?: string;
  version?: string;
  isBackedUp?: boolean;
}

/** Inserts the record of a database, which is available unless a status is given. The database has no instance. */
export async function givenDatabase(
  api: ServiceApi,
  { orgId, mode }: Caller,
  given: GivenDatabase = {},
): Promise<string> {
  const { label = 'Shop', status = 'available', version = '16', isBackedUp = true } = given;
  const id = uuidv7();
  await api.rows(
    `INSERT INTO managed_databases (id, org_id, mode, label, engine, engine_version, size, status, host, port, database_name, username, high_availability,
       last_backup_at, created_at)
     VALUES ($1, $2, $3::mode, $4, 'postgres', $5, 'small', $6::database_status, '127.0.0.1', 1, 'db', 'u', false,
       CASE WHEN $7 THEN now() END, now())`,
    [id, orgId, mode, label, version, status, isBackedUp],
  );
  return id;
}

/** Inserts the record of a backup. Its archive does not exist. */
export async function givenBackup(
  api: ServiceApi,
  databaseId: string,
  status = 'completed',
  version = '16',
): Promise<string> {
  const id = uuidv7();
  await api.rows(
    `INSERT INTO database_backups (id, database_id, kind, status, engine_version, sequence, storage_key, size_bytes, raw_bytes, manifest_mac, checksum_sha256,
       created_at, completed_at)
     SELECT $1, $2, 'on_demand', $3::backup_status, $4, (SELECT count(*) + 1 FROM database_backups WHERE database_id = $2), c.key, c.size, c.size, c.key, c.key, now(), c.at
     FROM (SELECT CASE WHEN $3 = 'completed' THEN 'key' END AS key, CASE WHEN $3 = 'completed' THEN 1 END AS size, CASE WHEN $3 = 'completed' THEN now() END AS at) c`,
    [id, databaseId, status, version],
  );
  return id;
}
