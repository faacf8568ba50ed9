import { catchUp } from '@drydock/pg-upgrade/catch-up';
import { copyData } from '@drydock/pg-upgrade/copy-data';
import { copySchema } from '@drydock/pg-upgrade/copy-schema';
import type { Move } from '@drydock/pg-upgrade/session';
import { realisticDatabase } from '@drydock/pg-upgrade/testing/realistic-database';
import { writerTableSql } from '@drydock/pg-upgrade/testing/steady-writer';
import pg from 'pg';
import type { DatabaseHostClient } from '../src/client';
import type { DatabaseDescription } from '../src/protocol';
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

export async function moveOf(client: DatabaseHostClient, databaseId: string, fence = 1, id = upgradeId): Promise<Move> {
  const access = await client.accessUpgrade(databaseId, id, claim(fence));
  return {
    oldUrl: access.old_url,
    targetUrl: access.target_url,
    databaseName: access.database_name,
    path: access.path,
    fence: String(fence),
  };
}

export const stages = { copySchema, copyData, catchUp } as const;

/** Up to where the cutover may come. */
export async function prepareMove(
  client: DatabaseHostClient,
  databaseId: string,
  path: Move['path'] = 'logical',
  { id, major } = { id: upgradeId, major: 18 },
): Promise<Move> {
  await client.prepareTarget(databaseId, { upgrade_id: id, to_major: major, path }, claim(1));
  if (path === 'offline') await client.blockWrites(databaseId, id, claim(1));
  const move = await moveOf(client, databaseId, 1, id);
  for (const stage of Object.values(stages)) await stage(move);
  return move;
}
