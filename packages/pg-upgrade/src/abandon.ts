import { removeGuard } from './guard-ddl';
import { unpublish } from './replication';
import { type Move, openStageSession, withDatabase } from './session';

/** The old database as it was before the move: nothing published, identities and DDL given back. The target must be stopped first. Again is harmless. */
export async function abandonMove(move: Pick<Move, 'oldUrl' | 'databaseName' | 'fence' | 'signal'>): Promise<void> {
  const { client, close } = await openStageSession(withDatabase(move.oldUrl, move.databaseName), move);
  try {
    await unpublish(client);
    await removeGuard(client);
  } finally {
    await close();
  }
}
