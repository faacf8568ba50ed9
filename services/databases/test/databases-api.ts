import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { permissions } from '@drydock/contracts/permissions';
import type { Caller } from '@drydock/service-kit/internal-token';
import { callService, type ServiceAnswer } from '@drydock/service-kit/testing/call-service';
import { type TestPostgres, testPostgres } from '@drydock/test-kit/postgres';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';

export const serviceDir = path.resolve(__dirname, '..');
export const secret = (): string => randomBytes(32).toString('hex');
/** Nobody listens there: the API must answer without its queue and its host. */
const nowhere = '127.0.0.1:1';

export interface DatabasesApi {
  postgres: TestPostgres;
  /** Straight to the tables, to arrange and to look. */
  rows<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  call(method: string, path: string, options?: CallOptions): Promise<ServiceAnswer>;
  close(): Promise<void>;
}

export interface CallOptions {
  body?: unknown;
  caller?: Caller;
  idempotencyKey?: string;
}

export const callerOf = (change: Partial<Caller> = {}): Caller => ({
  keyId: uuidv7(),
  orgId: uuidv7(),
  mode: 'live',
  scopes: permissions,
  ...change,
});

interface Around {
  queue?: string;
  host?: { url: string; secret: string };
  serviceSecret?: string;
}

/** The real API process' inside over a real socket and a real Postgres; no worker, so that what was accepted stays queued. */
export async function startApi(defaultCaller: Caller, { queue, host, serviceSecret = secret() }: Around = {}): Promise<DatabasesApi> {
  const postgres = await testPostgres({ serviceDir });
  const tokenSecret = secret();
  const api = composeApi(
    readServerConfig({
      LOG_LEVEL: 'silent',
      DATABASE_URL: postgres.url,
      SERVICE_SECRET: serviceSecret,
      INTERNAL_TOKEN_SECRET: tokenSecret,
      AUDIT_TOKEN_SECRET: secret(),
      KEYS_URL: `http://${nowhere}`,
      QUEUE_URL: queue ?? `redis://${nowhere}`,
      DATABASE_HOST_URL: host?.url ?? `http://${nowhere}`,
      DATABASE_HOST_SECRET: host?.secret ?? secret(),
    }),
  );
  await api.start();
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
  // The database is dropped under connections that are just closing.
  pool.on('error', () => undefined);
  return {
    postgres,
    rows: async (text, values = []) => (await pool.query(text, [...values])).rows,
    call: (method, target, { caller = defaultCaller, ...options } = {}) =>
      callService({ service: api.service, name: 'databases', tokenSecret }, { method, path: target, caller, ...options }),
    close: async () => {
      await api.lifetime.close();
      await pool.end();
      await postgres.close();
    },
  };
}

export interface GivenDatabase {
  label?: string;
  status?: string;
  version?: string;
  isBackedUp?: boolean;
}

/** A database that is served, as far as the tables know. */
export async function givenDatabase(api: DatabasesApi, { orgId, mode }: Caller, given: GivenDatabase = {}): Promise<string> {
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
