import { ownSchema } from './own-objects';
import { unsubscribe } from './replication';
import { type Move, openStageSession, withDatabase } from './session';

/** Stage: the new database keeps no trace of the move, and its planner knows the tables. Again is harmless. The old server is not asked. */
export async function finishTarget(move: Omit<Move, 'oldUrl' | 'path'>): Promise<void> {
  const { client, close } = await openStageSession(withDatabase(move.targetUrl, move.databaseName), move);
  try {
    await unsubscribe(client);
    await client.query(`drop schema if exists ${ownSchema} cascade`);
    await client.query('analyze');
  } finally {
    await close();
  }
}
