import pg from 'pg';
import { z } from 'zod';
import type { Api } from './api';
import { makeAnew, problemOf } from './make-anew';
import { poll } from './poll';
import type { Seed } from './seed';

const createdSchema = z.looseObject({ id: z.string(), password: z.string() });
const databaseSchema = z.looseObject({
  status: z.string(),
  created_at: z.string(),
  host: z.string(),
  port: z.int(),
  database_name: z.string(),
  username: z.string(),
  last_backup_at: z.string().nullable(),
});

interface DemoDatabase {
  id: string;
  url: string;
}

/** The content of a database. The statements change nothing when an interrupted seeding runs them again. */
const content = `
  CREATE TABLE IF NOT EXISTS berths (id int PRIMARY KEY, name text NOT NULL, metres numeric NOT NULL);
  CREATE TABLE IF NOT EXISTS visits (id bigserial PRIMARY KEY, berth_id int NOT NULL REFERENCES berths, ship text NOT NULL, since timestamptz NOT NULL);
  CREATE OR REPLACE VIEW moored AS SELECT b.name, v.ship FROM berths b JOIN visits v ON v.berth_id = b.id;
  INSERT INTO berths SELECT n, 'Berth ' || n, 10 + n FROM generate_series(1, 20) n ON CONFLICT DO NOTHING;
  INSERT INTO visits (berth_id, ship, since) SELECT 1 + n % 20, 'Ship ' || n, now() FROM generate_series(1, 500) n
    WHERE NOT EXISTS (SELECT FROM visits);
`;

/**
 * Creates a database, or finds the database of an earlier call with the same `key`. To a repeated call the API returns
 * the password again.
 */
async function makeDatabase(api: Api, label: string, key: string): Promise<DemoDatabase> {
  const body = { label, engine: 'postgres', engine_version: '16', size: 'small' };
  const { id, password } = await makeAnew(
    `demo-database-${key}`,
    async (idempotencyKey) =>
      createdSchema.parse((await api('/v1/databases', { method: 'POST', body, idempotencyKey })).body),
    async (made) => {
      const { status, created_at } = databaseSchema.parse((await api(`/v1/databases/${made.id}`)).body);
      return status === 'failed' ? created_at : null;
    },
  );
  const made = await poll(`Creating ${label}`, async () => {
    const database = databaseSchema.parse((await api(`/v1/databases/${id}`)).body);
    if (database.status === 'failed')
      throw new Error(`${label} could not be created: ${await problemOf(api, `/v1/databases/${id}`)}`);
    return database.status === 'available' ? database : null;
  });
  const { host, port, username, database_name } = made;
  return { id, url: `postgresql://${username}:${password}@${host}:${port}/${database_name}?sslmode=require` };
}

async function fill({ url }: DemoDatabase): Promise<void> {
  const plain = new URL(url);
  plain.searchParams.delete('sslmode');
  // The database agent's own authority has signed the certificate. This client does not know that authority.
  const client = new pg.Client({ connectionString: plain.href, ssl: { rejectUnauthorized: false } });
  await client.connect();
  try {
    await client.query(content);
  } finally {
    await client.end();
  }
}

async function seedWorld(api: Api): Promise<DemoDatabase[]> {
  const [ledger, scratch] = await Promise.all([
    makeDatabase(api, 'Harbour ledger', 'ledger'),
    makeDatabase(api, 'Scratch, never backed up', 'scratch'),
  ]);
  await fill(ledger);
  await api(`/v1/databases/${ledger.id}/backups`, { method: 'POST', body: {}, idempotencyKey: 'demo-database-backup' });
  await poll('The first backup of the database', async () => {
    const { last_backup_at } = databaseSchema.parse((await api(`/v1/databases/${ledger.id}`)).body);
    return last_backup_at;
  });
  return [ledger, scratch];
}

/** Creates in each mode a Postgres 16 with data and a backup, and a database that was never backed up. */
export const databasesSeed: Seed = {
  title: 'Making two managed databases',
  fields: ['databases'],
  seed: async ({ api, keep }) => {
    const databases = await seedWorld(api('live_key'));
    await seedWorld(api('sandbox_key'));
    keep({ databases });
  },
};
