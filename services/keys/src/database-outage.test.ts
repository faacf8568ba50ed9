import { classifyDatabaseError } from '@drydock/service/database';
import { startTcpFaultProxy, type TcpFaultProxy } from '@drydock/testing/tcp-fault-proxy';
import { type KeysApi, startKeys } from '../test/keys-api';
import { type KeysDatabase, openDatabase } from './context/database.store';

let api: KeysApi;
let proxy: TcpFaultProxy;
beforeAll(async () => {
  api = await startKeys();
  const { hostname, port } = new URL(api.postgres.url);
  proxy = await startTcpFaultProxy({ host: hostname, port: Number(port) });
});
afterAll(async () => {
  await proxy.close();
  await api.close();
});

const queries: Readonly<Record<string, (database: KeysDatabase) => Promise<unknown>>> = {
  'plain SQL': ({ sql }) => sql().query('SELECT 1'),
  'a look-up of Prisma': ({ pool }) => pool.apiKey.findMany({ take: 1 }),
  'a transaction': ({ transaction, sql }) => transaction((tx) => sql(tx).query('SELECT 1')),
};

/** Changes of the database's URL that make the database unreachable. */
const outages: Readonly<Record<string, (url: URL) => void>> = {
  'nobody listens': (url) => {
    url.port = '1';
  },
  'no such host': (url) => {
    url.hostname = 'nowhere.invalid';
  },
  'the database is not there yet': (url) => {
    url.pathname = '/not_restored_yet';
  },
  'the role is not there yet': (url) => {
    url.username = 'not_restored_yet';
  },
  'the connection is reset': (url) => {
    url.port = String(proxy.port);
    proxy.cutAfter('upstream', 1);
  },
};

const cases = Object.keys(outages).flatMap((outage) => Object.keys(queries).map((query) => [outage, query] as const));

test.each(cases)('%s: %s fails as unavailable, and not as an unknown error', async (outage, query) => {
  const url = new URL(api.postgres.url);
  outages[outage]?.(url);
  const database = openDatabase(url.href, { max: 1 });
  const error: unknown = await queries[query]?.(database).catch((thrown: unknown) => thrown);
  await database.close();
  expect(error).toBeInstanceOf(Error);
  expect(classifyDatabaseError(error)).toBe('unavailable');
});

test('each session has time limits for a statement, a lock and an idle transaction', async () => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = '1';
  const database = openDatabase(api.postgres.url, { max: 1 });
  const limits = await database
    .sql()
    .query(
      `SELECT setting::int AS ms FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') ORDER BY name`,
    );
  await database.close();
  expect(limits).toEqual([{ ms: 10_000 }, { ms: 2_000 }, { ms: 5_000 }]);
});
