import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { type PostgresServer, startPostgres } from '../server/postgres';
import { fingerprintOf, runMigrations } from './service-databases';

const run = promisify(execFile);
const cli = path.resolve(__dirname, '../../dist/migrate/cli.js');
// The suite has its own server, because the tested code changes roles and rights of a whole server.
let server: PostgresServer;
let ownerUrl: string;
let serviceDir: string;

beforeAll(async () => {
  serviceDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-migrations-'));
  fs.chmodSync(serviceDir, 0o711); // as root, the server runs as nobody
  fs.cpSync(path.resolve(__dirname, '../../test/service'), serviceDir, { recursive: true });
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
    {
      migration_name: expect.stringMatching(/_notes$/),
      checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
      finished: true,
    },
    expect.objectContaining({ migration_name: '20990101000000_check', finished: true }),
  ]);
});

describe('a deployment that was killed in the middle of a migration', () => {
  const slow =
    'CREATE TABLE first_half (id int);\nSELECT pg_sleep(2); -- a comment; with a semicolon\nCREATE TABLE second_half (id int);';
  const folder = () => path.join(serviceDir, 'prisma/migrations/20990102000000_slow');
  const client = () => new pg.Client({ connectionString: server.adminUrl.replace(/postgres$/, 'notes') });
  const sleeping = `SELECT pid FROM pg_stat_activity WHERE query LIKE '%first_half%' AND pid <> pg_backend_pid() AND state = 'active'`;

  /** Kills a deployment while Postgres runs its script. */
  async function killDeployment(admin: pg.Client): Promise<void> {
    const child = spawn(process.execPath, [cli, 'deploy', serviceDir], {
      env: { DATABASE_URL: ownerUrl },
      stdio: 'ignore',
    });
    const gone = new Promise((resolve) => child.once('exit', resolve));
    while ((await admin.query(sleeping)).rowCount === 0) await sleep(20);
    child.kill('SIGKILL');
    await gone;
  }

  beforeEach(() => {
    fs.mkdirSync(folder());
    fs.writeFileSync(path.join(folder(), 'migration.sql'), slow);
  });
  afterEach(async () => {
    fs.rmSync(folder(), { recursive: true });
    const owner = client();
    await owner.connect();
    await owner.query(
      "DROP TABLE first_half, second_half; DELETE FROM _prisma_migrations WHERE migration_name LIKE '%_slow'",
    );
    await owner.end();
  });

  test.each(['still ends in Postgres', 'is given up by Postgres'])(
    'is completed by the next deployment if the script %s',
    async (how) => {
      const admin = client();
      await admin.connect();
      await killDeployment(admin);
      const isGivenUp = how.startsWith('is given up');
      if (isGivenUp) await admin.query(sleeping.replace('SELECT pid', 'SELECT pg_terminate_backend(pid)'));
      expect(await runMigrations(serviceDir, ownerUrl)).toEqual(isGivenUp ? ['20990102000000_slow'] : []);
      expect(await runMigrations(serviceDir, ownerUrl)).toEqual([]);
      const { rows } = await admin.query("SELECT tablename FROM pg_tables WHERE tablename LIKE '%_half' ORDER BY 1");
      expect(rows).toEqual([{ tablename: 'first_half' }, { tablename: 'second_half' }]);
      await admin.end();
    },
  );
});

test('a migration that fails says why, is not taken for applied, and is applied once it was mended', async () => {
  const broken = path.join(serviceDir, 'prisma/migrations/29990101000000_broken');
  fs.mkdirSync(broken);
  fs.writeFileSync(path.join(broken, 'migration.sql'), 'CREATE TABLE note (id int);');
  await expect(runMigrations(serviceDir, ownerUrl)).rejects.toThrow(/already exists/);
  await expect(runMigrations(serviceDir, ownerUrl)).rejects.toThrow(/already exists/);
  fs.writeFileSync(path.join(broken, 'migration.sql'), 'CREATE TABLE mended (id int);');
  expect(await runMigrations(serviceDir, ownerUrl)).toEqual(['29990101000000_broken']);
});

describe('the databases of services, made by a job with secrets in files', () => {
  const write = (name: string, content: string): string => {
    fs.writeFileSync(path.join(serviceDir, name), content);
    return path.join(serviceDir, name);
  };
  const make = (names: readonly string[], password: string, adminUrl = server.adminUrl) => {
    const databases = JSON.stringify(names.map((name) => ({ name, password })));
    const env = { ADMIN_DATABASE_URL_FILE: write('admin', adminUrl), DATABASES_FILE: write('databases', databases) };
    return run(process.execPath, [cli, 'databases'], { env });
  };
  const open = async (user: string, password: string, database: string): Promise<pg.Client> => {
    const client = new pg.Client({
      connectionString: `postgresql://${user}:${password}@127.0.0.1:${server.port}/${database}`,
    });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const ask = async (user: string, password: string, database: string, sql: string): Promise<unknown[]> => {
    const client = await open(user, password, database);
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  };
  const login = (name: string, password: string): string => `${name}_${fingerprintOf(password)}`;
  const [before, after] = ['a'.repeat(32), 'b'.repeat(32)];

  test('each service has a login that enters only its own database and acts as its owner; a second run of the job keeps rows and logins', async () => {
    const { stdout } = await make(['boats', 'docks'], before);
    expect(JSON.parse(stdout)).toEqual({ boats: [login('boats', before)], docks: [login('docks', before)] });
    await ask(login('boats', before), before, 'boats', 'CREATE TABLE kept AS SELECT 1 AS number');
    await make(['boats', 'docks', 'cranes'], before);
    expect(
      await ask(login('boats', before), before, 'boats', 'SELECT number, current_user::text AS me FROM kept'),
    ).toEqual([{ number: 1, me: 'boats' }]);
    await expect(ask(login('boats', before), before, 'docks', 'SELECT 1')).rejects.toThrow(
      'permission denied for database',
    );
    await expect(ask('boats', before, 'boats', 'SELECT 1')).rejects.toThrow('password authentication failed');
    expect(await ask(login('cranes', before), before, 'cranes', 'SELECT 1 AS number')).toEqual([{ number: 1 }]);
  });

  test('each of two passwords opens the database until one of them is no longer given; then the sessions of that one end, and no others', async () => {
    await make(['boats'], `${before},${after}`);
    const [old, next] = [
      await open(login('boats', before), before, 'boats'),
      await open(login('boats', after), after, 'boats'),
    ];
    await next.query('CREATE TABLE made_by_the_next AS SELECT 2 AS number');
    await old.query('ALTER TABLE made_by_the_next ADD COLUMN text text');
    expect((await old.query('SELECT number FROM made_by_the_next')).rows).toEqual([{ number: 2 }]);
    await make(['boats'], `${after},${before}`);
    await old.query('SELECT 1');
    await make(['boats'], after);
    await expect(old.query('SELECT 1')).rejects.toThrow(/connection/i);
    await next.query('SELECT 1');
    await next.end();
    await expect(ask(login('boats', before), before, 'boats', 'SELECT 1')).rejects.toThrow(
      'password authentication failed',
    );
  });

  test('an owner who logs in by itself, as in earlier releases, does so until its password is no longer given', async () => {
    const admin = new pg.Client({ connectionString: server.adminUrl });
    await admin.connect();
    await admin.query(`CREATE ROLE ferries LOGIN PASSWORD '${before}'; `);
    await admin.query('CREATE DATABASE ferries OWNER ferries');
    await admin.end();
    const earlier = await open('ferries', before, 'ferries');
    for (const given of [before, `${before},${after}`, `${after},${before}`]) {
      await make(['ferries'], given);
      await ask('ferries', before, 'ferries', 'SELECT 1');
      await ask(login('ferries', before), before, 'ferries', 'SELECT 1');
    }
    await earlier.query('SELECT 1');
    await make(['ferries'], after);
    await expect(earlier.query('SELECT 1')).rejects.toThrow(/connection/i);
    await expect(ask('ferries', before, 'ferries', 'SELECT 1')).rejects.toThrow('password authentication failed');
  });

  test('a superuser whose URL has two passwords gets the first of them, whichever the server had', async () => {
    const urlWith = (password: string): string => Object.assign(new URL(server.adminUrl), { password }).href;
    const { password: first } = new URL(server.adminUrl);
    const other = 'c'.repeat(32);
    const works = (password: string): Promise<unknown> => ask('postgres', password, 'postgres', 'SELECT 1');
    await make(['boats'], after, urlWith(`${first},${other}`));
    await expect(works(other)).rejects.toThrow('password authentication failed');
    for (let times = 0; times < 2; times += 1) {
      await make(['boats'], after, urlWith(`${other},${first}`));
      await works(other);
      await expect(works(first)).rejects.toThrow('password authentication failed');
    }
    await make(['boats'], after, urlWith(`${first},${other}`));
    await works(first);
    await expect(make(['boats'], after, urlWith(`${other},${'d'.repeat(32)}`))).rejects.toThrow(
      'password authentication failed',
    );
  });
});
