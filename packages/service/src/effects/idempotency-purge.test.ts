import { readFileSync } from 'node:fs';
import path from 'node:path';
import { testPostgres } from '@drydock/postgres/testing/postgres';
import { until } from '@drydock/testing/wait';
import { Pool } from 'pg';
import { pgDatabase } from '../database/pool';
import { createLog } from '../telemetry/log';
import { createIdempotencyPurge } from './idempotency';

const insert = `INSERT INTO idempotency_records (id, fingerprint, caller_key_id, target, claim, lease_expires_at, created_at)
  VALUES ($1, '\\x00', 'key', 'POST /v1/x', gen_random_uuid(), now(), now() - $2::interval)`;

it('a stored answer is deleted after 24 hours and not before', async () => {
  const postgres = await testPostgres({
    sql: [readFileSync(path.join(__dirname, '../../prisma/idempotency.sql'), 'utf8')],
  });
  const pool = new Pool({ connectionString: postgres.url });
  const purge = createIdempotencyPurge(pgDatabase(pool), createLog({ service: 'test', level: 'silent' }), 20);
  try {
    await pool.query(insert, [Buffer.from('young'), '23 hours']);
    await pool.query(insert, [Buffer.from('old'), '25 hours']);
    purge.start();
    await until(async () => (await pool.query('SELECT 1 FROM idempotency_records')).rowCount === 1);
    expect((await pool.query("SELECT convert_from(id, 'UTF8') AS id FROM idempotency_records")).rows).toEqual([
      { id: 'young' },
    ]);
  } finally {
    await purge.stop();
    await pool.end();
    await postgres.close();
  }
});
