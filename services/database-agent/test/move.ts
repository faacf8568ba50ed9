import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { DatabaseHostClient } from '@drydock/agent/clients';
import type { DatabaseDescription } from '@drydock/agent/database';
import type { Major } from '@drydock/contracts/databases/major';
import { realisticDatabase } from '@drydock/postgres/testing/realistic-database';
import { writerTableSql } from '@drydock/postgres/testing/steady-writer';
import type { SteadyWriter } from '@drydock/testing/steady-writer';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { claim, createDatabase, customer, spawnHost, type TestHost } from './host';

export const upgradeId = 'upgrade-1';
export const writerPassword = 'the-writer-s-password';

/** Makes a Postgres 16 database with a small amount of realistic data. */
export async function createFilled(
  client: DatabaseHostClient,
  databaseId: string,
  bytes = 2e6,
): Promise<DatabaseDescription> {
  const database = await createDatabase(client, databaseId, 16);
  const session = new pg.Client(customer(database));
  await session.connect();
  for (const statement of [...realisticDatabase({ bytes, password: writerPassword }), writerTableSql])
    await session.query(statement);
  await session.end();
  return database;
}

export const stages = ['copy_schema', 'copy_data', 'catch_up'] as const;
type Stage = (typeof stages)[number] | 'finish';

export const runStage = (
  client: DatabaseHostClient,
  databaseId: string,
  stage: Stage,
  fence = 1,
  id = upgradeId,
): Promise<void> => client.runStage(databaseId, { jobId: randomUUID(), upgradeId: id, stage }, claim(fence));

export const compare = (client: DatabaseHostClient, databaseId: string, fence = 1) =>
  client.compare(databaseId, { jobId: randomUUID(), upgradeId }, claim(fence));

/** Prepares the target and runs all stages before the cutover. The offline way also blocks writes. */
export async function prepareMove(
  client: DatabaseHostClient,
  databaseId: string,
  way: 'logical' | 'offline' = 'logical',
  { id, major }: { id: string; major: Major } = { id: upgradeId, major: 18 },
): Promise<void> {
  await client.prepareTarget(databaseId, { upgrade_id: id, to_major: major, path: way }, claim(1));
  if (way === 'offline') await client.blockWrites(databaseId, id, claim(1));
  for (const stage of stages) await runStage(client, databaseId, stage, 1, id);
}

/**
 * Requests the cutover from an agent that kills itself at a point of the cutover. Resolves with the agent that is
 * started next.
 */
export async function killInCutover(host: TestHost, databaseId: string, point: string): Promise<TestHost> {
  await writeFile(path.join(host.folder.faultsDir, `database_host.cutover.${point}@kill`), '');
  const exited = once(host.child, 'exit');
  await expect(host.client.cutover(databaseId, upgradeId, claim(1))).rejects.toMatchObject({ code: 'unreachable' });
  expect(await exited).toEqual([null, 'SIGKILL']);
  await host.client.close();
  return spawnHost(host.folder);
}

/**
 * Kills an instance while a cutover is held at the fault point `sealed`, where nobody can write. Resolves with the
 * outcome of the cutover. The cutover is requested again until it reaches that point, because an instance that was
 * killed before may not be running again yet.
 */
export async function cutOverWhileKilling(
  host: TestHost,
  databaseId: string,
  kill: () => void,
): Promise<'done' | 'refused'> {
  const token = path.join(host.folder.faultsDir, 'database_host.cutover.sealed@delay');
  await writeFile(token, '');
  const cutOver = async (): Promise<'done' | 'refused'> => {
    const outcome = await host.client.cutover(databaseId, upgradeId, claim(1)).then(
      () => 'done' as const,
      () => 'refused' as const,
    );
    if (outcome === 'done' || !existsSync(token)) return outcome;
    await wait(100);
    return cutOver();
  };
  const attempt = cutOver();
  await until(() => !existsSync(token), { timeoutMs: 60_000 });
  kill();
  return attempt;
}

/** Ends a writer after it has written for a while, and expects all its rows in the database. `readIds` reads them. */
export async function expectNothingLost(writer: SteadyWriter, readIds: () => Promise<number[]>): Promise<void> {
  const seen = writer.written;
  await until(() => writer.written > seen + 20, { timeoutMs: 60_000 });
  const { acknowledged } = await writer.stop();
  const there = new Set(await readIds());
  expect(acknowledged.filter((id) => !there.has(id))).toEqual([]);
}
