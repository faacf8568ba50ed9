import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type TestPostgres, testPostgres } from '@drydock/test-kit/postgres';
import pg from 'pg';
import { runMigrations } from './run-migrations';

const run = promisify(execFile);
const cli = path.resolve(__dirname, '../dist/cli.js');
let database: TestPostgres;
let serviceDir: string;

beforeAll(async () => {
  database = await testPostgres();
  serviceDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-migrations-'));
  fs.cpSync(path.resolve(__dirname, '../test/service'), serviceDir, { recursive: true });
});

afterAll(async () => {
  await database.close();
  fs.rmSync(serviceDir, { recursive: true, force: true });
});

async function call(args: string[], url: string): Promise<unknown> {
  const { stdout } = await run(process.execPath, [cli, ...args], { env: { DATABASE_URL: url } });
  return JSON.parse(stdout);
}

test('a schema in several files becomes a migration, which the unprivileged owner applies once', async () => {
  expect(await call(['pending', serviceDir], database.clusterUrl)).toContain('CREATE TABLE "note"');
  expect(String(await call(['create', serviceDir, 'notes'], database.clusterUrl))).toMatch(/\d{14}_notes$/);
  const [applied] = await runMigrations(serviceDir, database.url);
  expect(applied).toMatch(/_notes$/);
  expect(await runMigrations(serviceDir, database.url)).toEqual([]);
  expect(await call(['pending', serviceDir], database.clusterUrl)).toBeNull();
  expect(await call(['create', serviceDir, 'nothing'], database.clusterUrl)).toBeNull();
});

test('the history is the one that the native CLI keeps', async () => {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query('SELECT migration_name, checksum, finished_at IS NOT NULL AS finished FROM _prisma_migrations');
  await client.end();
  expect(rows).toEqual([
    { migration_name: expect.stringMatching(/_notes$/), checksum: expect.stringMatching(/^[0-9a-f]{64}$/), finished: true },
  ]);
});

test('a migration that fails says why and is not taken for applied', async () => {
  const broken = path.join(serviceDir, 'prisma/migrations/29990101000000_broken');
  fs.mkdirSync(broken);
  fs.writeFileSync(path.join(broken, 'migration.sql'), 'CREATE TABLE note (id int);');
  await expect(runMigrations(serviceDir, database.url)).rejects.toThrow(/already exists/);
});
