import { dropOwnRole, ensureOldRoles, readOwners } from './copy/own-roles';
import { removeGuard } from './guard-ddl';
import { dropSlots, unpublish } from './replication';
import { type Move, withStage } from './session';

/**
 * Puts the old database back to the state before the move: removes the publication, and gives replica identities and
 * the right to change the schema back. The target must be stopped first. May be called again.
 */
export async function abandonMove(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    const { publisher, replicator } = stage.own;
    const server = await stage.server('old');
    await dropSlots(stage);
    const there = await server.query('select from pg_catalog.pg_roles where rolname = $1 and rolcanlogin', [
      publisher.role,
    ]);
    if (there.rowCount === 1) {
      await ensureOldRoles(stage, await readOwners(server, move.databaseName));
      await unpublish(stage);
    }
    await removeGuard(stage);
    for (const login of [replicator, publisher]) await dropOwnRole(server, login);
  });
}
