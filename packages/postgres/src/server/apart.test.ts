/**
 * @processes
 * @root
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { type PostgresServer, startPostgres } from './postgres';

/*
 * An attacker is superuser of one server and has a shell through COPY … TO PROGRAM. Only the isolation of the machine
 * limits that shell.
 */

const isRoot = process.getuid?.() === 0;
let folder: string;
let servers: PostgresServer[];
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-apart-'));
  fs.chmodSync(folder, 0o711);
  fs.writeFileSync(path.join(folder, 'master.key'), 'the master key', { mode: 0o600 });
  const start = (name: string, account: number) =>
    startPostgres({ folder: path.join(folder, name), account, isEphemeral: true });
  servers = await Promise.all([start('customer', 300_901), start('platform', 290_901)]);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  fs.rmSync(folder, { recursive: true, force: true });
});

async function run(server: PostgresServer | undefined, command: string): Promise<'done' | 'refused'> {
  const client = new pg.Client({ connectionString: server?.adminUrl });
  await client.connect();
  try {
    // The program reads the row, because COPY could fail if the program ended before the row was written.
    await client.query(`copy (select 1) to program ${client.escapeLiteral(`cat > /dev/null; ${command}`)}`);
    return 'done';
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === '38000') return 'refused';
    throw error;
  } finally {
    await client.end();
  }
}

test('a shell in one server reaches neither a secret of the machine, nor another server’s data and rules, nor its processes', async () => {
  const [customer, platform] = servers;
  const hba = path.join(platform?.dataDir ?? '', 'pg_hba.conf');
  const before = fs.readFileSync(hba, 'utf8');
  expect(await run(customer, 'true')).toBe('done');
  const attempts = {
    secret: `cat ${path.join(folder, 'master.key')}`,
    password: `cat ${path.join(folder, 'platform/password')}`,
    rules: `echo 'host all all all trust' > ${hba}`,
    data: `ls ${platform?.dataDir}`,
    ourPassword: `cat ${path.join(folder, 'customer/password')}`,
    process: `kill -0 ${platform?.proof.pid}`,
    environment: `cat /proc/${process.pid}/environ`,
  };
  for (const [what, command] of Object.entries(attempts))
    expect([what, await run(customer, command)]).toEqual([what, 'refused']);
  expect(fs.readFileSync(hba, 'utf8')).toBe(before);
});

test('a data folder of another account is handed over as a whole, and a link in it hands over nothing else', async () => {
  const [customer] = servers;
  const secret = path.join(folder, 'master.key');
  const owner = fs.statSync(secret).uid;
  await customer?.stop();
  fs.symlinkSync(secret, path.join(customer?.dataDir ?? '', 'link'));
  servers[0] = await startPostgres({ folder: path.join(folder, 'customer'), account: 300_902, isEphemeral: true });
  const account = isRoot ? 300_902 : owner;
  const dataDir = servers[0].dataDir;
  expect([
    fs.statSync(dataDir).uid,
    fs.statSync(path.join(dataDir, 'PG_VERSION')).uid,
    fs.statSync(secret).uid,
  ]).toEqual([account, account, owner]);
});
