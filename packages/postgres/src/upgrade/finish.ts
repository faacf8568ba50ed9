import { dropOwnRole, ensureOldRoles, ensureTargetRoles, readOwners } from './copy/own-roles';
import { removeGuard } from './guard-ddl';
import { dropSlots, unpublish, unsubscribe } from './replication';
import { type Move, withStage } from './session';

/**
 * Returns the old database to its state before the move: nothing is published, replica identities are restored, and DDL
 * is allowed. The target must be stopped. The call can be repeated. Throws `busy`.
 */
export async function abandonMove(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    const { publisher, replicator } = stage.own;
    const server = await stage.server('old');
    // Changes of the schema are allowed first, because the restoring of the identities may wait for a transaction.
    await removeGuard(stage);
    await dropSlots(stage);
    const there = await server.query('select from pg_catalog.pg_roles where rolname = $1 and rolcanlogin', [
      publisher.role,
    ]);
    if (there.rowCount === 1) {
      await ensureOldRoles(stage, await readOwners(server, move.databaseName));
      await unpublish(stage);
    }
    for (const login of [replicator, publisher]) await dropOwnRole(server, login);
  });
}

/**
 * Stage: removes all objects of the move from the new database, and runs ANALYZE. It does not need the old server, and
 * can be repeated.
 */
export async function finishTarget(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    const { keeper: login, schema } = stage.own;
    const server = await stage.server('target');
    const there = await server.query('select from pg_catalog.pg_roles where rolname = $1 and rolcanlogin', [
      login.role,
    ]);
    if (there.rowCount === 0) return;
    await ensureTargetRoles(stage, await readOwners(server, move.databaseName));
    await unsubscribe(stage);
    const keeper = await stage.keeper();
    await keeper.query(`drop schema if exists ${schema} cascade`);
    await keeper.query('analyze');
    await dropOwnRole(server, login);
  });
}
