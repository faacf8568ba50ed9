import { randomUUID } from 'node:crypto';
import type { DatabaseHostClient } from '@drydock/agent/database/client';
import type { DatabaseDescription } from '@drydock/agent/database/protocol';
import type { Major } from '@drydock/contracts/databases/major';
import { realisticDatabase } from '@drydock/postgres/testing/realistic-database';
import { writerTableSql } from '@drydock/postgres/testing/steady-writer';
import pg from 'pg';
import { claim, createDatabase, customer } from './host';

export const upgradeId = 'upgrade-1';
export const writerPassword = 'the-writer-s-password';

/** A Postgres 16 with realistic data, small. */
export async function createFilled(client: DatabaseHostClient, databaseId: string, bytes = 2e6): Promise<DatabaseDescription> {
  const database = await createDatabase(client, databaseId, 16);
  const session = new pg.Client(customer(database));
  await session.connect();
  for (const statement of [...realisticDatabase({ bytes, password: writerPassword }), writerTableSql]) await session.query(statement);
  await session.end();
  return database;
}

export const stages = ['copy_schema', 'copy_data', 'catch_up'] as const;
type Stage = (typeof stages)[number] | 'finish';

export const runStage = (client: DatabaseHostClient, databaseId: string, stage: Stage, fence = 1, id = upgradeId): Promise<void> =>
  client.runStage(databaseId, { jobId: randomUUID(), upgradeId: id, stage }, claim(fence));

export const compare = (client: DatabaseHostClient, databaseId: string, fence = 1) =>
  client.compare(databaseId, { jobId: randomUUID(), upgradeId }, claim(fence));

/** Up to where the cutover may come. */
export async function prepareMove(
  client: DatabaseHostClient,
  databaseId: string,
  path: 'logical' | 'offline' = 'logical',
  { id, major }: { id: string; major: Major } = { id: upgradeId, major: 18 },
): Promise<void> {
  await client.prepareTarget(databaseId, { upgrade_id: id, to_major: major, path }, claim(1));
  if (path === 'offline') await client.blockWrites(databaseId, id, claim(1));
  for (const stage of stages) await runStage(client, databaseId, stage, 1, id);
}
