/**
 * These tests use the processes of a real Postgres, like that of an organisation's sites.
 *
 * @processes
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CpuShares, niceOf } from '@drydock/agent/host';
import { type PostgresServer, startPostgres } from '@drydock/postgres';
import { readNice, readProcessUse } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import pg from 'pg';

const organisation = 'org-1';
const role = `site_${'a'.repeat(32)}`;
const database = `${role}_${'b'.repeat(12)}`;
const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-shares-'));
const sampleMs = 500;
let nowMs = 0;
let server: PostgresServer;
let shares: CpuShares;
let admin: pg.Client;

async function open(user: string): Promise<pg.Client> {
  const url = new URL(server.adminUrl);
  if (user === role) Object.assign(url, { username: role, password: 'of-the-site', pathname: `/${database}` });
  const client = new pg.Client({ connectionString: url.href });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

beforeAll(async () => {
  server = await startPostgres({ folder, isSocketOnly: true, isEphemeral: true });
  admin = await open('postgres');
  await admin.query(`create role ${role} login password 'of-the-site'`);
  await admin.query(`create database ${database} owner ${role}`);
  const { port } = server;
  const socketFolder = server.socketFolder ?? '';
  shares = new CpuShares({
    clusters: () => [{ socketFolder, port, organisation }],
    organisationOf: () => organisation,
    cores: 1,
    now: () => (nowMs += sampleMs),
    onError: (error) => {
      throw error;
    },
  });
});
afterAll(async () => {
  await shares.stop();
  await admin.end();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the pids of the server's children whose title begins with `title`. */
function childrenOf(title: string): number[] {
  const uses = [...readProcessUse().values()].filter(({ parent }) => parent === server.proof.pid);
  return uses.map(({ pid }) => pid).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith(title));
}

const niceOfPid = (pid: number): number | null => readNice(pid).session ?? readNice(pid).thread;

/**
 * Whether priorities change here. On a kernel without autogroups (`sched_autogroup_enabled`), an ordinary user cannot
 * raise a priority again, so no priority is lowered.
 */
const canSink = process.getuid?.() === 0 || readNice(process.pid).session !== null;

const work = 'select count(*) from generate_series(1, 3000000)';
const endedSessions = (): Promise<unknown> => until(() => childrenOf(`postgres: ${role} `).length === 0);

test('an organisation is charged with a session that begins and ends between two samples', async () => {
  await shares.sample();
  const before = shares.shareOf(organisation);
  const client = await open(role);
  await client.query(work);
  await client.end();
  await endedSessions();
  await shares.sample();
  expect(shares.shareOf(organisation)).toBeGreaterThan(before);
});

test('an organisation is charged only once with a session that ends after it was sampled', async () => {
  const client = await open(role);
  await client.query(work);
  await shares.sample();
  const charged = shares.shareOf(organisation);
  await client.end();
  await endedSessions();
  await shares.sample();
  expect(shares.shareOf(organisation)).toBeLessThan(charged);
});

const itWith = canSink ? test : test.skip;
itWith(
  'a process that Postgres starts for a statement has the priority of its session, and so has the server itself',
  async () => {
    const client = await open(role);
    await client.query('set debug_parallel_query = on');
    const sleeping = client.query('select pg_sleep(1000)').catch(() => undefined);
    const workers = () => childrenOf('postgres: parallel worker ');
    await until(() => workers().length > 0);
    const watched = [server.proof.pid, ...workers(), ...childrenOf(`postgres: ${role} `)];
    expect(watched.length).toBe(3);
    // For an ordinary user the kernel allows one change of priority in a tenth of a second, so three changes may take
    // several samples.
    const haveSunk = async (): Promise<boolean> => {
      await shares.sample();
      return watched.every((pid) => (niceOfPid(pid) ?? 0) >= niceOf(0));
    };
    await until(haveSunk, { what: 'their priority' });
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role]);
    await sleeping;
  },
);
