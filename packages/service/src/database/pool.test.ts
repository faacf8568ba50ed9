import { testPostgres } from '@drydock/postgres/testing/postgres';
import pg from 'pg';
import { classifyDatabaseError } from './database-error';
import { openPool, pgDatabase } from './pool';

const scales = ['1', '10'] as const;
const usual = process.env['DRYDOCK_TIMEOUT_SCALE'];
afterEach(() => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = usual;
});

const limitsSql = `SELECT name, setting::int AS ms FROM pg_settings
 WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') ORDER BY name`;

test.each(scales)('every statement, lock and idle transaction has a limit in Postgres, times %s', async (scale) => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = scale;
  const postgres = await testPostgres({ sql: [] });
  const pool = openPool(postgres.url);
  const { rows } = await pool.query<{ name: string; ms: number }>(limitsSql);
  await pool.end();
  await postgres.close();
  expect(rows).toEqual([
    { name: 'idle_in_transaction_session_timeout', ms: 10_000 * Number(scale) },
    { name: 'lock_timeout', ms: 2_000 * Number(scale) },
    { name: 'statement_timeout', ms: 5_000 * Number(scale) },
  ]);
});

test('a wait for a row that stays locked ends, and counts as an unavailable database', async () => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = '1';
  const postgres = await testPostgres({
    sql: ['CREATE TABLE things (id int PRIMARY KEY)', 'INSERT INTO things VALUES (1)'],
  });
  const pool = openPool(postgres.url);
  const holder = new pg.Client({ connectionString: postgres.url });
  await holder.connect();
  await holder.query('BEGIN; SELECT FROM things FOR UPDATE');
  const waiting = pgDatabase(pool).transaction((tx) => tx.query('SELECT FROM things FOR UPDATE'));
  const error: unknown = await waiting.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: '55P03' });
  expect(classifyDatabaseError(error)).toBe('unavailable');
  await holder.end();
  await pool.end();
  await postgres.close();
});
