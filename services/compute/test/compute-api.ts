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
const secret = (): string => randomBytes(32).toString('hex');
/** Nobody listens there: the API must answer without its queue. */
const nowhere = '127.0.0.1:1';

export interface ComputeApi {
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
  headers?: Record<string, string>;
}

export const callerOf = (change: Partial<Caller> = {}): Caller => ({
  keyId: uuidv7(),
  orgId: uuidv7(),
  mode: 'live',
  scopes: permissions,
  ...change,
});

/** A range as it is configured. */
export const targetConfig = (url: string, token: string, change: object = {}) => ({
  driver: 'hetzner',
  url,
  token,
  currency: 'EUR',
  specs: {
    cpx11: { hour_minor: 1, month_minor: 449 },
    cpx31: { hour_minor: 3, month_minor: 1590 },
    cax11: { hour_minor: 1, month_minor: 379 },
  },
  plans: { small: 'cpx11' },
  lost_answer_seconds: 3,
  deadline_ms: 2_000,
  ...change,
});

/** The real API process' inside over a real socket and a real Postgres; no worker, so that what was accepted stays queued. */
export async function startApi(
  defaultCaller: Caller,
  { queue = `redis://${nowhere}`, targets = {}, sandboxTargets = {} }: { queue?: string; targets?: object; sandboxTargets?: object } = {},
): Promise<ComputeApi> {
  const postgres = await testPostgres({ serviceDir });
  const tokenSecret = secret();
  const api = composeApi(
    readServerConfig({
      LOG_LEVEL: 'silent',
      DATABASE_URL: postgres.url,
      SERVICE_SECRET: secret(),
      INTERNAL_TOKEN_SECRET: tokenSecret,
      AUDIT_TOKEN_SECRET: secret(),
      KEYS_URL: `http://${nowhere}`,
      QUEUE_URL: queue,
      COMPUTE_TARGETS: JSON.stringify(targets),
      SANDBOX_COMPUTE_TARGETS: JSON.stringify(sandboxTargets),
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
      callService({ service: api.service, name: 'compute', tokenSecret }, { method, path: target, caller, ...options }),
    close: async () => {
      await api.lifetime.close();
      await pool.end();
      await postgres.close();
    },
  };
}
