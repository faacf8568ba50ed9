import { dropOwnRole, ensureTargetRoles, readOwners } from './copy/own-roles';
import { unsubscribe } from './replication';
import { type Move, withStage } from './session';

/**
 * Stage: removes every trace of the move from the new database, and gives its planner statistics. It may run again. It
 * does not need the old server.
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
