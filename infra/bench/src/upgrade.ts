import { randomBytes, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { createDatabaseHostClient, type DatabaseHostClient } from '@drydock/agent/clients';
import type { DatabaseDescription } from '@drydock/agent/database';
import type { Major } from '@drydock/contracts/databases/major';
import { realisticDatabase } from '@drydock/postgres/testing/realistic-database';
import { SteadyWriter, writerTableSql } from '@drydock/postgres/testing/steady-writer';
import { findFreePort, spawnGuarded } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import { Client } from 'pg';
import { printRows } from './report';
import { withWorkspace } from './workspace';

/** The approximate amount of data, in megabytes. 1000 MB take some minutes. */
const megabytes = Number(process.env['DRYDOCK_BENCH_UPGRADE_MB'] ?? 150);
const rowsPerSecond = 200;
const claim = { fence: '1' };
const passwords = { owner: 'the-owner-s-password', writer: 'the-writer-s-password' };

type UpgradePath = 'logical' | 'offline';

export interface Measured {
  totalSeconds: number;
  gapMs: number;
  writesBlockedMs: number;
  lost: number;
  outcome: string;
}

const configOf = ({ host, port, ca_certificate: ca }: DatabaseDescription, user: 'shop_owner' | 'app_rw') => ({
  host,
  port,
  database: 'shop',
  user,
  password: user === 'app_rw' ? passwords.writer : passwords.owner,
  ssl: { ca },
});

async function createFilled(client: DatabaseHostClient, databaseId: string): Promise<DatabaseDescription> {
  const size = { vcpu: 2, ram_gb: 4, storage_gb: 20 };
  const wanted = {
    mode: 'live',
    major: 16,
    database_name: 'shop',
    username: 'shop_owner',
    password: passwords.owner,
    size,
  } as const;
  const database = await client.ensureDatabase(databaseId, wanted, claim);
  await withClient(database, async (session) => {
    const bytes = megabytes * 1e6;
    for (const statement of [...realisticDatabase({ bytes, password: passwords.writer }), writerTableSql])
      await session.query(statement);
  });
  return database;
}

async function withClient<T>(database: DatabaseDescription, work: (session: Client) => Promise<T>): Promise<T> {
  const session = new Client(configOf(database, 'shop_owner'));
  await session.connect();
  try {
    return await work(session);
  } finally {
    await session.end();
  }
}

/**
 * Runs the steps of the service's upgrade workflow without its backups: from the start of an instance of the new major
 * to the ANALYZE of the copy and the stop of the old instance.
 */
export async function upgrade(
  client: DatabaseHostClient,
  databaseId: string,
  route: UpgradePath,
  toMajor: Major = 18,
): Promise<{ writesBlockedMs: number; outcome: string }> {
  const upgradeId = 'bench';
  await client.prepareTarget(databaseId, { upgrade_id: upgradeId, to_major: toMajor, path: route }, claim);
  const run = (stage: 'copy_schema' | 'copy_data' | 'catch_up' | 'finish'): Promise<void> =>
    client.runStage(databaseId, { jobId: randomUUID(), upgradeId, stage }, claim);
  await run('copy_schema');
  if (route === 'offline') await client.blockWrites(databaseId, upgradeId, claim);
  await run('copy_data');
  await run('catch_up');
  const { writes_blocked_ms: writesBlockedMs } = await client.cutover(databaseId, upgradeId, claim);
  const { outcome } = await client.compare(databaseId, { jobId: randomUUID(), upgradeId }, claim);
  await run('finish');
  await client.restOld(databaseId, upgradeId, claim);
  return { writesBlockedMs, outcome };
}

async function measure(client: DatabaseHostClient, route: UpgradePath): Promise<Measured> {
  const databaseId = randomUUID();
  const database = await createFilled(client, databaseId);
  const writer = new SteadyWriter({ config: configOf(database, 'app_rw'), rowsPerSecond, name: 'bench' });
  await until(() => writer.written > rowsPerSecond);
  const startedMs = performance.now();
  const upgraded = await upgrade(client, databaseId, route);
  const totalSeconds = (performance.now() - startedMs) / 1000;
  const { acknowledged, longestGapMs: gapMs } = await writer.stop();
  const { rows } = await withClient(database, (session) => session.query<{ id: string }>('select id from written'));
  const there = new Set(rows.map(({ id }) => Number(id)));
  await client.destroyDatabase(databaseId, claim);
  return { ...upgraded, totalSeconds, gapMs, lost: acknowledged.filter((id) => !there.has(id)).length };
}

/**
 * Compares an upgrade of Postgres from 16 to 18 by logical replication with an upgrade by an offline copy. Both move
 * the same data under a live writer.
 */
export const benchUpgrade = (): Promise<void> =>
  withDatabaseHost('upgrade', async (client) =>
    printUpgrade(await measure(client, 'logical'), await measure(client, 'offline')),
  );

/** Runs `work` with a database agent of its own, which keeps its data in a temporary folder. */
export const withDatabaseHost = (name: string, work: (client: DatabaseHostClient) => Promise<void>): Promise<void> =>
  withWorkspace(name, async (folder) => {
    fs.chmodSync(folder, 0o711);
    const [port, secret] = [await findFreePort(), randomBytes(32).toString('hex')];
    const environment = {
      PORT: String(port),
      DATABASE_HOST_SECRET: secret,
      DATABASES_DIR: path.join(folder, 'databases'),
      LOG_LEVEL: 'warn',
    };
    const entry = path.resolve(__dirname, '../../../services/database-agent/dist/server.js');
    const host = await spawnGuarded(process.execPath, [entry], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'inherit', 'inherit'],
      signalOnOrphan: 'SIGTERM',
    });
    const url = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${url}/readyz`)).ok, { timeoutMs: 30_000 });
    const client = createDatabaseHostClient({ url, secret });
    try {
      await work(client);
    } finally {
      await client.close();
      await host.stop('SIGTERM', 30_000);
    }
  });

function printUpgrade(ours: Measured, offline: Measured): void {
  const peer = 'offline copy of the same data';
  const rows = [
    {
      what: `longest gap that a writer of ${rowsPerSecond} rows/s saw`,
      ours: `${Math.round(ours.gapMs)} ms`,
      peer,
      peerValue: `${Math.round(offline.gapMs)} ms`,
      ratio: offline.gapMs / ours.gapMs,
      bar: 20,
    },
    {
      what: 'the whole upgrade with comparison and ANALYZE (at most twice)',
      ours: `${ours.totalSeconds.toFixed(1)} s`,
      peer,
      peerValue: `${offline.totalSeconds.toFixed(1)} s`,
      ratio: offline.totalSeconds / ours.totalSeconds,
      bar: 0.5,
    },
  ];
  const blocked = `Writes were blocked for ${Math.round(ours.writesBlockedMs)} ms online, ${Math.round(offline.writesBlockedMs)} ms offline.`;
  const kept = `Acknowledged rows lost: ${ours.lost} and ${offline.lost}; old against new: ${ours.outcome} and ${offline.outcome}.`;
  printRows('Postgres 16 to 18', rows, `About ${megabytes} MB. ${blocked} ${kept}`);
}
