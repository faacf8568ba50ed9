import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { CreatedDatabase, ManagedDatabase } from '@drydock/contracts/databases/databases';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { Caller } from '@drydock/service/access';
import { succeed } from '@drydock/service/testing/follow-workflow';
import { openServiceWorld, type ServiceWorld } from '@drydock/service/testing/service-world';
import type { QueueBackend } from '@drydock/testing/scope';
import { newSecret } from '@drydock/testing/secret';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { type DatabaseHostProcess, startDatabaseHost } from './database-host-process';
import { databases } from './databases-api';
import { askMysql, mysqlAddressOf } from './mysql-client';

export interface DatabasesWorld extends ServiceWorld {
  host: DatabaseHostProcess;
  backupsDir: string;
}

/**
 * Makes a commit fail if a database becomes available while a workflow on it is queued or runs, because the customer's
 * next change would then be refused. A workflow that waits for staff may keep its lock.
 */
const availableIsFree = `
  CREATE FUNCTION refuse_held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM workflow WHERE resource_key = 'database:' || NEW.id AND status IN ('queued', 'running')) THEN
      RAISE 'database % is available and held', NEW.id;
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER available_is_free AFTER UPDATE OF status ON managed_databases DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.status = 'available' AND OLD.status <> 'available') EXECUTE FUNCTION refuse_held()`;

/** Opens a world: the API, a database agent and a folder for backups. Tests start the workers. */
export async function openWorld(backend: QueueBackend, caller: Caller): Promise<DatabasesWorld> {
  const host = await startDatabaseHost();
  const backupsDir = mkdtempSync(path.join(tmpdir(), 'drydock-database-backups-'));
  const world = await openServiceWorld(databases, {
    backend,
    caller,
    environment: { DATABASE_HOST_URL: host.url, DATABASE_HOST_READER_SECRET: host.readerSecret },
    workers: { DATABASE_HOST_SECRET: host.secret, BACKUPS_DIR: backupsDir, ARCHIVE_KEY: newSecret() },
  });
  await world.api.rows(availableIsFree);
  return {
    ...world,
    host,
    backupsDir,
    close: async () => {
      await world.close();
      await host.stop();
      rmSync(backupsDir, { recursive: true, force: true });
    },
  };
}

export interface Made {
  id: string;
  /** The URL with the login of the owner. A client must use TLS. */
  url: string;
}

const postgres16 = { engine: 'postgres', engine_version: '16' };

/**
 * Makes a database and a table with three rows. The database is a Postgres 16 unless another version is given.
 */
export async function makeDatabase(
  world: DatabasesWorld,
  label = 'Shop',
  caller: Caller = world.caller,
  version = postgres16,
): Promise<Made> {
  const body = { label, ...version, size: 'small' };
  const { id, password } = await succeed<CreatedDatabase>(world, 'POST', '/v1/databases', { body, caller });
  const { host, port, username, database_name } = (await world.api.call('GET', `/v1/databases/${id}`, { caller }))
    .json as ManagedDatabase;
  const scheme = version.engine === 'postgres' ? 'postgresql' : 'mysql';
  const url = `${scheme}://${username}:${password}@${host}:${port}/${database_name}`;
  await query(url, 'CREATE TABLE notes (id serial PRIMARY KEY, text text)');
  await query(url, "INSERT INTO notes (text) VALUES ('one'), ('two'), ('three')");
  return { id, url };
}

/** Asks for the preflight of a call. While the trial of a backup runs, asks again. */
export const preflightOf = (world: DatabasesWorld, target: string, body: object = {}): Promise<Preflight> =>
  until(async () => {
    const answer = (await world.api.call('POST', `${target}/preflight`, { body })).json as Preflight;
    return !answer.findings.some(({ detail }) => detail.includes('it has not ended yet; ask again')) && answer;
  });

/** Runs a query over TLS, as a customer does. */
export async function query<Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> {
  if (url.startsWith('mysql:')) return (await askMysql(mysqlAddressOf(url), text)) as Row[];
  const client = new pg.Client({
    connectionString: url,
    ssl: { rejectUnauthorized: false },
    connectionTimeoutMillis: 15_000,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows ?? [];
  } finally {
    await client.end();
  }
}

/** The major in the form in which the server reports it: `18`, `11.8`. */
export async function majorOf(url: string): Promise<string> {
  const [row] = await query<{ version: string }>(url, 'SELECT version() AS version');
  return (url.startsWith('mysql:') ? /^\d+\.\d+/ : /(?<=^PostgreSQL )\d+/).exec(row?.version ?? '')?.[0] ?? '';
}
