import { installGuard } from './guard-ddl';
import { runPart, storePlan } from './plan-store';
import { unpublish, unsubscribe } from './replication';
import { syncRoles } from './roles';
import { planSchema } from './schema-statements';
import { type Move, openStageSession, withDatabase, withStage } from './session';
import { copyDatabaseGrants, createTargetDatabase } from './target-database';

/**
 * Stage: the customer's DDL is refused from here on; roles, then an empty database with the old one's types, functions, tables and views, and the keys where
 * replication needs them. Begins again from an empty target each time. Throws UpgradeError `busy`, `statement_failed`, TransferError `dump_failed`.
 */
export async function copySchema(move: Move): Promise<void> {
  await resetTarget(move);
  await withStage(move, ({ old, target }) => makeDatabase(move, old, target), 'server');
  move.progress?.(0.2);
  await withStage(move, async ({ old, target }) => {
    await unpublish(old);
    await installGuard(old);
    const plan = await planSchema(withDatabase(move.oldUrl, move.databaseName), move.signal);
    move.progress?.(0.6);
    await storePlan(target, plan);
    await runPart([target], 'pre');
    if (move.path === 'logical') await runPart([target], 'keys');
  });
}

type Client = Parameters<typeof syncRoles>[0];

async function makeDatabase(move: Move, old: Client, target: Client): Promise<void> {
  await createTargetDatabase(target, move.databaseName);
  await syncRoles(old, target, move.databaseName);
  await copyDatabaseGrants(old, target, move.databaseName);
}

/** A database with a subscription cannot be dropped. */
async function resetTarget(move: Move): Promise<void> {
  const server = await openStageSession(move.targetUrl, move);
  const known = await server.client.query('select from pg_catalog.pg_database where datname = $1', [move.databaseName]);
  await server.close();
  if (known.rowCount === 0) return;
  const database = await openStageSession(withDatabase(move.targetUrl, move.databaseName), move);
  await unsubscribe(database.client);
  await database.close();
}
