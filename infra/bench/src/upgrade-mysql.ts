import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { type Engine, findEngine, type MysqlServer, startMysql } from '@drydock/mysql';
import { SteadyWriter } from '@drydock/testing/steady-writer';
import { until } from '@drydock/testing/wait';
import mysql, { type Connection, type ConnectionOptions } from 'mysql2/promise';
import { timeCommand } from './measure';
import { printRows } from './report';
import { type Measured, upgrade, withDatabaseHost } from './upgrade';
import { withWorkspace } from './workspace';

const megabytes = Number(process.env['DRYDOCK_BENCH_UPGRADE_MB'] ?? 500);
const rowsPerSecond = 200;
type Step = readonly [from: string, to: string];
const steps: readonly Step[] = [
  ['10.5', '10.11'],
  ['10.11', '11.8'],
];
const password = 'the-owner-s-password';
const tables = 10;
/** The approximate size of a row: a number, twelve hashes as text, and two indexed columns. */
const rowBytes = 480;

async function connect(login: ConnectionOptions): Promise<Connection> {
  const client = await mysql.createConnection({ ...login, connectTimeout: 60_000 });
  client.on('error', () => undefined);
  return client;
}

async function fill(login: ConnectionOptions): Promise<void> {
  const client = await connect(login);
  const rows = Math.ceil((megabytes * 1e6) / tables / rowBytes);
  for (let table = 0; table < tables; table += 1) {
    await client.query(
      `create table t${table} (id int primary key, kind int, at datetime, text varchar(400), key (kind), key (at))`,
    );
    await client.query(
      `insert into t${table} select seq, seq % 1000, '2026-01-01' + interval seq second, repeat(md5(seq), 12) from seq_1_to_${rows}`,
    );
  }
  await client.query('create table written (id int primary key)');
  await client.end();
}

const writerOf = (login: () => ConnectionOptions): SteadyWriter =>
  new SteadyWriter({
    rowsPerSecond,
    connect: async () => {
      const client = await connect(login());
      return {
        write: async (id) => void (await client.query('insert into written values (?)', [id])),
        close: async () => client.destroy(),
      };
    },
  });

/**
 * Runs `move` while a writer inserts rows. Resolves with the result of `move` and three measurements. `lost` counts the
 * rows that were acknowledged but are missing afterwards.
 */
async function underWriter<T>(
  login: () => ConnectionOptions,
  move: () => Promise<T>,
): Promise<T & Pick<Measured, 'totalSeconds' | 'gapMs' | 'lost'>> {
  const writer = writerOf(login);
  await until(() => writer.written > rowsPerSecond);
  const startedMs = performance.now();
  const moved = await move();
  const totalSeconds = (performance.now() - startedMs) / 1000;
  const seen = writer.written;
  await until(() => writer.written > seen + rowsPerSecond);
  const { acknowledged, longestGapMs: gapMs } = await writer.stop();
  const client = await connect(login());
  const [rows] = await client.query('select id from written');
  await client.end();
  const there = new Set((rows as { id: number }[]).map(({ id }) => id));
  return { ...moved, totalSeconds, gapMs, lost: acknowledged.filter((id) => !there.has(id)).length };
}

/** Measures an upgrade by the database agent, in the steps of the service's workflow but without its backups. */
async function measureOurs([from, to]: Step): Promise<Measured> {
  let measured: Measured | null = null;
  await withDatabaseHost('upgrade-mysql', async (client) => {
    const databaseId = randomUUID();
    const size = { vcpu: 2, ram_gb: 4, storage_gb: 20 };
    const names = { database_name: 'shop', username: 'shop_owner', password };
    const database = await client.ensureDatabase(
      databaseId,
      { mode: 'live', major: from, ...names, size },
      { fence: '1' },
    );
    const { host, port, ca_certificate: ca } = database;
    const login = { host, port, user: 'shop_owner', password, database: 'shop', ssl: { ca } };
    await fill(login);
    measured = await underWriter(
      () => login,
      () => upgrade(client, databaseId, 'logical', to),
    );
    await client.destroyDatabase(databaseId, { fence: '1' });
  });
  if (measured === null) throw new Error('nothing was measured');
  return measured;
}

/**
 * Measures the offline upgrade: the data folder is copied while the server is stopped, and the upgrade program of the
 * newer version upgrades the copy.
 */
async function measureOffline([from, to]: Step): Promise<Omit<Measured, 'outcome'>> {
  const [older, newer] = [await findEngine('mariadb', from), await findEngine('mariadb', to)];
  return withWorkspace('upgrade-mysql-offline', async (folder) => {
    fs.chmodSync(folder, 0o711);
    const [before, after] = [path.join(folder, 'old'), path.join(folder, 'new')];
    const bufferPoolBytes = 128 * 2 ** 20;
    let server: MysqlServer = await startMysql({ engine: older, folder: before, bufferPoolBytes });
    const admin = await connect(server.admin);
    await admin.query('create database shop');
    await admin.end();
    const login = (): ConnectionOptions => ({ ...server.admin, database: 'shop' });
    await fill(login());
    try {
      return await underWriter(login, async () => {
        const stoppedMs = performance.now();
        await server.stop();
        await timeCommand({ bin: 'cp', args: ['-a', before, after] });
        fs.renameSync(path.join(after, `mariadb-${from}`), path.join(after, `mariadb-${to}`));
        // The time includes the upgrade program, because clients must not use the server before that program has ended.
        const upgraded = await startMysql({ engine: newer, folder: after, bufferPoolBytes });
        await runUpgradeProgram(newer, upgraded, path.join(folder, 'tools'));
        server = upgraded;
        return { writesBlockedMs: performance.now() - stoppedMs };
      });
    } finally {
      await server.stop();
    }
  });
}

/**
 * Runs `mariadb-upgrade`, which starts two helper programs from its own folder. The programs of a fetched version need
 * the dynamic loader that was fetched with them. So `folder` gets a script for each of the three programs, which runs
 * the program with that loader.
 */
async function runUpgradeProgram({ root, programs }: Engine, { admin }: MysqlServer, folder: string): Promise<void> {
  const loader = programs.client?.slice(0, -1) ?? [];
  fs.mkdirSync(folder);
  for (const name of ['mariadb', 'mariadb-check', 'mariadb-upgrade']) {
    const command = [
      ...loader,
      ...(loader.length > 0 ? ['--argv0', '"$0"'] : []),
      path.join(root, 'usr/bin', name),
      '"$@"',
    ];
    fs.writeFileSync(path.join(folder, name), `#!/bin/sh\nexec ${command.join(' ')}\n`, { mode: 0o755 });
  }
  const args = ['--no-defaults', `--socket=${admin.socketPath}`, '--user=root', `--password=${admin.password}`];
  await timeCommand({ bin: path.join(folder, 'mariadb-upgrade'), args });
}

/** Compares each upgrade of a MariaDB, under a live writer, with the offline upgrade of a copy of its data folder. */
export async function benchUpgradeMysql(): Promise<void> {
  for (const step of steps) await benchStep(step);
}

async function benchStep(step: Step): Promise<void> {
  const [ours, offline] = [await measureOurs(step), await measureOffline(step)];
  const peer = 'copy of the data folder and mariadb-upgrade';
  const rows = [
    {
      what: `longest gap that a writer of ${rowsPerSecond} rows/s saw (bar: below 500 ms)`,
      ours: `${Math.round(ours.gapMs)} ms`,
      peer,
      peerValue: `${Math.round(offline.gapMs)} ms`,
      ratio: offline.gapMs / ours.gapMs,
      bar: offline.gapMs / 500,
    },
    {
      what: 'the whole upgrade with comparison',
      ours: `${ours.totalSeconds.toFixed(1)} s`,
      peer,
      peerValue: `${offline.totalSeconds.toFixed(1)} s`,
      ratio: offline.totalSeconds / ours.totalSeconds,
    },
  ];
  const blocked = `Writes were blocked for ${Math.round(ours.writesBlockedMs)} ms live, ${Math.round(offline.writesBlockedMs)} ms offline.`;
  const kept = `Acknowledged rows lost: ${ours.lost} and ${offline.lost}; old against new: ${ours.outcome}.`;
  printRows(`MariaDB ${step.join(' to ')}`, rows, `About ${megabytes} MB. ${blocked} ${kept}`);
}
