import { permissions } from '@drydock/contracts/platform/permissions';
import { type TestPostgres, testPostgres } from '@drydock/postgres/testing/postgres';
import { newSecret } from '@drydock/testing/secret';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import type { Caller } from '../access/internal-token';
import type { Service } from '../http/service';
import type { Lifetime } from '../process/shutdown';
import { callService, type ServiceAnswer } from './call-service';

/** The parts that differ between services. */
export interface TestedService {
  name: string;
  /** The service's folder, which has its migrations and its build output. */
  dir: string;
  /** Composes the service's API from the environment that its process would read. */
  compose(environment: Readonly<Record<string, string>>): {
    service: Service;
    lifetime: Lifetime;
    start(): Promise<{ url: string }>;
  };
}

export interface CallOptions {
  body?: unknown;
  caller?: Caller;
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

/** A running API of a service, and its database. */
export interface ServiceApi {
  url: string;
  postgres: TestPostgres;
  /** The caller of requests that do not name a caller. */
  caller: Caller;
  /**
   * The environment with which the API was started, with secrets of its own. A worker of the same service gets it too.
   */
  environment: Readonly<Record<string, string>> & Readonly<Record<'SERVICE_SECRET' | 'INTERNAL_TOKEN_SECRET', string>>;
  /** Reads and writes the tables directly, to prepare a test and to check its result. */
  rows<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Calls the service as the gateway would, for `options.caller`. `path` includes the query. */
  call(method: string, path: string, options?: CallOptions): Promise<ServiceAnswer>;
  /** Stops the API as a signal would, and waits until it has written everything. The database stays. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

/**
 * An address at which nobody listens. An API must answer even if its queue, its agents and the keys service do not
 * answer.
 */
export const nowhere = '127.0.0.1:1';

/** A caller with a key of a new organisation, live and with every permission. */
export const callerOf = (change: Partial<Caller> = {}): Caller => ({
  keyId: uuidv7(),
  orgId: uuidv7(),
  mode: 'live',
  scopes: permissions,
  ...change,
});

/** The scale of time-outs for the processes of a test, which do not inherit the environment of the test. */
export const timeoutScale = (): Record<string, string> => {
  const { DRYDOCK_TIMEOUT_SCALE: scale } = process.env;
  return scale === undefined ? {} : { DRYDOCK_TIMEOUT_SCALE: scale };
};

/**
 * Starts the composed API on a real socket and a real Postgres. There is no worker, so accepted work stays queued.
 * `own` adds settings to the usual ones or replaces them.
 */
export async function startServiceApi(
  tested: TestedService,
  caller: Caller,
  own: Record<string, string> = {},
): Promise<ServiceApi> {
  const postgres = await testPostgres({ serviceDir: tested.dir });
  const tokenSecret = newSecret();
  const environment = {
    LOG_LEVEL: 'silent',
    ...timeoutScale(),
    DATABASE_URL: postgres.url,
    SERVICE_SECRET: newSecret(),
    AUDIT_TOKEN_SECRET: newSecret(),
    KEYS_URL: `http://${nowhere}`,
    QUEUE_URL: `redis://${nowhere}`,
    ...own,
    INTERNAL_TOKEN_SECRET: tokenSecret,
  };
  const composed = tested.compose(environment);
  const { service, lifetime } = composed;
  const { url } = await composed.start();
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
  // Connections that are still being closed fail when the database is dropped. Their errors are ignored.
  pool.on('error', () => undefined);
  return {
    url,
    postgres,
    caller,
    environment,
    rows: async (text, values = []) => (await pool.query(text, [...values])).rows,
    call: (method, path, options) =>
      callService({ service, name: tested.name, tokenSecret }, { caller, ...options, method, path }),
    stop: () => lifetime.close(),
    close: async () => {
      await lifetime.close();
      await pool.end();
      await postgres.close();
    },
  };
}
