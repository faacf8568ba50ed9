import pg from 'pg';
import { installGuard } from '../guard-ddl';
import { runPart, storePlan } from '../plan-store';
import { ensurePublisherSchema, unpublish, unsubscribe } from '../replication';
import { type Move, type Stage, withStage } from '../session';
import { createTargetDatabase, liftConnectionLimit, ownDatabase, rehearseOpening } from '../target-database';
import { ensureOldRoles, ensureTargetRoles, readOwners } from './own-roles';
import { syncRoles } from './roles';
import { planSchema } from './schema-statements';

/**
 * Stage: refuses the customer's DDL from now on. Creates the target database again, with its roles and with the old
 * database's types, functions, tables and views, but without rows. If rows will be replicated, creates the unique keys
 * and replica identities as well. Throws UpgradeError `busy` or `statement_failed`, or TransferError `dump_failed` or
 * `message_too_large`.
 */
export async function copySchema(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    const owners = await makeEmptyTarget(stage);
    await ensureOldRoles(stage, owners);
    await liftConnectionLimit(await stage.server('old'), move.databaseName);
    move.progress?.(0.2);
    await unpublish(stage);
    await ensurePublisherSchema(stage);
    await installGuard(stage);
    const plan = await planSchema(stage);
    move.progress?.(0.6);
    await storePlan(stage, plan);
    await runPart(stage, 'schemas');
    await runPart(stage, 'extensions');
    await runPart(stage, 'pre');
    await runPart(stage, 'dropChecks');
    await runPart(stage, 'attach');
    if (move.path === 'logical') await runPart(stage, 'keys');
    await syncRoles(await stage.server('old'), await stage.server('target'), move.databaseName);
  });
}

/**
 * Creates the target database again, empty and with its roles. Returns the roles that own an object in the old
 * database.
 */
export async function makeEmptyTarget(stage: Stage): Promise<string[]> {
  const { databaseName } = stage.move;
  const [old, target] = [await stage.server('old'), await stage.server('target')];
  // A database with a subscription cannot be dropped.
  await unsubscribe(stage);
  await target.query(`drop database if exists ${pg.escapeIdentifier(databaseName)} with (force)`);
  await createTargetDatabase(stage);
  await syncRoles(old, target, databaseName, { withMemberships: false });
  await ownDatabase(stage);
  const owners = await readOwners(old, databaseName);
  await ensureTargetRoles(stage, owners);
  await rehearseOpening(stage);
  return owners;
}
