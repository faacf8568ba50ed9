import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type PostgresServer, startPostgres } from '@drydock/embedded/postgres';
import pg from 'pg';
import { runMigrations } from './run-migrations';

const run = promisify(execFile);
const cli = path.resolve(__dirname, '../dist/cli.js');
// a server of its own rather than test-kit's shared one: test-kit itself needs this package
let server: PostgresServer;
let ownerUrl: string;
let serviceDir: string;

beforeAll(async () => {
  serviceDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-migrations-'));
  fs.chmodSync(serviceDir, 0o711); // as root the server runs as nobody
  fs.cpSync(path.resolve(__dirname, '../test/service'), serviceDir, { recursive: true });
  server = await startPostgres({ folder: path.join(serviceDir, 'postgres'), isEphemeral: true });
  const admin = new pg.Client({ connectionString: server.adminUrl });
  await admin.connect();
  await admin.query("CREATE ROLE notes LOGIN PASSWORD 'notes'");
  await admin.query('CREATE DATABASE notes OWNER notes');
  await admin.end();
  ownerUrl = `postgresql://notes:notes@127.0.0.1:${server.port}/notes`;
});

afterAll(async () => {
  await server.stop();
  fs.rmSync(serviceDir, { recursive: true, force: true });
});

async function call(args: string[], url: string): Promise<unknown> {
  const { stdout } = await run(process.execPath, [cli, ...args], { env: { DATABASE_URL: url } });
  return JSON.parse(stdout);
}

test('a schema in several files becomes a migration, which the unprivileged owner applies once', async () => {
  expect(await call(['pending', serviceDir], server.adminUrl)).toContain('CREATE TABLE "note"');
  expect(String(await call(['create', serviceDir, 'notes'], server.adminUrl))).toMatch(/\d{14}_notes$/);
  const [applied] = await runMigrations(serviceDir, ownerUrl);
  expect(applied).toMatch(/_notes$/);
  expect(await runMigrations(serviceDir, ownerUrl)).toEqual([]);
  expect(await call(['pending', serviceDir], server.adminUrl)).toBeNull();
  expect(await call(['create', serviceDir, 'nothing'], server.adminUrl)).toBeNull();
});

test('a check that was written by hand is read back, and is no difference from the schema', async () => {
  const folder = path.join(serviceDir, 'prisma/migrations/20990101000000_check');
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, 'migration.sql'), "ALTER TABLE note ADD CONSTRAINT note_said CHECK (text <> '');");
  expect(await runMigrations(serviceDir, ownerUrl)).toEqual(['20990101000000_check']);
  expect(await call(['pending', serviceDir], server.adminUrl)).toBeNull();
});

test('the history is the one that the native CLI keeps', async () => {
  const client = new pg.Client({ connectionString: ownerUrl });
  await client.connect();
  const { rows } = await client.query(
    'SELECT migration_name, checksum, finished_at IS NOT NULL AS finished FROM _prisma_migrations ORDER BY 1',
  );
  await client.end();
  expect(rows).toEqual([
    { migration_name: expect.stringMatching(/_notes$/), checksum: expect.stringMatching(/^[0-9a-f]{64}$/), finished: true },
    expect.objectContaining({ migration_name: '20990101000000_check', finished: true }),
  ]);
});

test('a migration that fails says why and is not taken for applied', async () => {
  const broken = path.join(serviceDir, 'prisma/migrations/29990101000000_broken');
  fs.mkdirSync(broken);
  fs.writeFileSync(path.join(broken, 'migration.sql'), 'CREATE TABLE note (id int);');
  await expect(runMigrations(serviceDir, ownerUrl)).rejects.toThrow(/already exists/);
});
