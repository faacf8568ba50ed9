import { permissions } from '@drydock/contracts/platform/permissions';
import { type TestPostgres, testPostgres } from '@drydock/postgres/testing/postgres';
import { newSecret } from '@drydock/testing/secret';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import type { Caller } from '../access/internal-token';
import type { Service } from '../http/service';
import type { Lifetime } from '../process/shutdown';
import { callService, type ServiceAnswer } from './call-service';

/** The parts that differ from service to service. */
export interface TestedService {
  name: string;
  /** The service's folder: its migrations are in it, and its build output. */
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

/** A service's API that listens, and its database. */
export interface ServiceApi {
  url: string;
  postgres: TestPostgres;
  /** The caller of a request that names none. */
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

/** An address at which nobody listens, because an API must answer without its queue, its hosts and keys. */
export const nowhere = '127.0.0.1:1';

/** The caller with a key of an organisation of its own, live and with every permission. */
export const callerOf = (change: Partial<Caller> = {}): Caller => ({
  keyId: uuidv7(),
  orgId: uuidv7(),
  mode: 'live',
  scopes: permissions,
  ...change,
});

/** The scale of time-outs for the processes of a test, which do not inherit its environment. */
export const timeoutScale = (): Record<string, string> => {
  const { DRYDOCK_TIMEOUT_SCALE: scale } = process.env;
  return scale === undefined ? {} : { DRYDOCK_TIMEOUT_SCALE: scale };
};

/**
 * Runs the composed API over a real socket and a real Postgres. There is no worker, so accepted work stays queued.
 * `own` adds to the usual settings or replaces some of them.
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
  // The database is dropped under connections that are just closing.
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
