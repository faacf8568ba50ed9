import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { CreatedDatabase, ManagedDatabase } from '@drydock/contracts/databases';
import type { WorkflowView } from '@drydock/contracts/workflows';
import type { Caller } from '@drydock/service-kit/internal-token';
import type { QueueBackend } from '@drydock/test-kit/queue-backends';
import { testQueue } from '@drydock/test-kit/test-queue';
import { until } from '@drydock/test-kit/wait';
import pg from 'pg';
import { type DatabaseHostProcess, startDatabaseHost } from './database-host-process';
import { type CallOptions, type DatabasesApi, secret, serviceDir, startApi } from './databases-api';

export const leaseSeconds = 1;

export interface DatabasesWorld {
  api: DatabasesApi;
  caller: Caller;
  host: DatabaseHostProcess;
  backupsDir: string;
  /** A worker process as it is deployed, from dist. */
  spawnWorker(environment?: Record<string, string>): ChildProcess;
  close(): Promise<void>;
}

/** API, queue, host of instances and Postgres for real; workers are spawned by the tests, which may kill them. */
export async function openWorld(backend: QueueBackend, caller: Caller): Promise<DatabasesWorld> {
  const [queue, host] = await Promise.all([testQueue(backend), startDatabaseHost()]);
  const backupsDir = mkdtempSync(path.join(tmpdir(), 'drydock-database-backups-'));
  // The worker sets the password that the API shows.
  const serviceSecret = secret();
  const api = await startApi(caller, { queue: queue.url, host, serviceSecret });
  const environment = {
    PATH: process.env['PATH'] ?? '',
    LOG_LEVEL: 'warn',
    DATABASE_URL: api.postgres.url,
    SERVICE_SECRET: serviceSecret,
    INTERNAL_TOKEN_SECRET: secret(),
    AUDIT_TOKEN_SECRET: secret(),
    KEYS_URL: 'http://127.0.0.1:1',
    QUEUE_URL: queue.url,
    DATABASE_HOST_URL: host.url,
    DATABASE_HOST_SECRET: host.secret,
    BACKUPS_DIR: backupsDir,
    ARCHIVE_KEY: secret(),
    WORKFLOW_LEASE_SECONDS: String(leaseSeconds),
    WORKFLOW_SWEEP_MS: '200',
    SANDBOX_SLOW_MS: '300',
  };
  return {
    api,
    caller,
    host,
    backupsDir,
    spawnWorker: (more = {}) =>
      spawn(process.execPath, ['--enable-source-maps', path.join(serviceDir, 'dist/worker.js')], {
        env: { ...environment, ...more },
        stdio: ['ignore', process.env['DRYDOCK_TEST_LOG'] === undefined ? 'ignore' : 'inherit', 'inherit'],
      }),
    close: async () => {
      await api.close();
      await host.stop();
      await queue.close();
      rmSync(backupsDir, { recursive: true, force: true });
    },
  };
}

/** Follows what a 202 points to until it has ended. */
export const ended = ({ api }: DatabasesWorld, location: unknown, options: CallOptions = {}): Promise<WorkflowView> =>
  until(
    async () => {
      const view = (await api.call('GET', String(location), options)).json as WorkflowView;
      return ['succeeded', 'failed', 'needs_attention'].includes(view.status) && view;
    },
    { timeoutMs: 90_000, everyMs: 50, what: `the end of ${String(location)}` },
  );

/** Accepts, waits, and insists on success. Resolves with the answer of the 202. */
export async function succeed<Body>(world: DatabasesWorld, method: string, target: string, options: CallOptions = {}): Promise<Body> {
  const accepted = await world.api.call(method, target, options);
  if (accepted.status !== 202) throw new Error(`${method} ${target} answered ${accepted.text}`);
  const view = await ended(world, accepted.headers['location'], options.caller === undefined ? {} : { caller: options.caller });
  if (view.status !== 'succeeded') throw new Error(`${view.kind} ended as ${JSON.stringify(view.error)} ${JSON.stringify(view.steps)}`);
  return accepted.json as Body;
}

export interface Made {
  id: string;
  /** For a client that insists on TLS. */
  url: string;
}

/** A Postgres 16 with three rows; the url as its owner would use it. */
export async function makeDatabase(world: DatabasesWorld, label = 'Shop', caller: Caller = world.caller): Promise<Made> {
  const body = { label, engine: 'postgres', engine_version: '16', size: 'small' };
  const { id, password } = await succeed<CreatedDatabase>(world, 'POST', '/v1/databases', { body, caller });
  const { host, port, username, database_name } = (await world.api.call('GET', `/v1/databases/${id}`, { caller })).json as ManagedDatabase;
  const url = `postgresql://${username}:${password}@${host}:${port}/${database_name}`;
  await query(url, 'CREATE TABLE notes (id serial PRIMARY KEY, text text)');
  await query(url, "INSERT INTO notes (text) VALUES ('one'), ('two'), ('three')");
  return { id, url };
}

/** By TLS, as a customer. */
export async function query<Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, ssl: { rejectUnauthorized: false }, connectionTimeoutMillis: 15_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows ?? [];
  } finally {
    await client.end();
  }
}

export const majorOf = async (url: string): Promise<string> =>
  String((await query<{ major: number }>(url, "SELECT current_setting('server_version_num')::int / 10000 AS major"))[0]?.major);
