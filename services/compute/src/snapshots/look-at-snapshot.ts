import { lookedUp } from '../changes/provider-unavailable';
import type { HandlerContext } from '../context';
import { readerOf } from '../servers/look-at-machine';
import type { Server } from '../servers/server.types';
import type { RollbackWorld } from './snapshot.rules';

/** What a rollback is decided by, asked of the provider now. */
export async function lookAtSnapshot(context: Pick<HandlerContext, 'targets'>, server: Server, snapshotId: string): Promise<RollbackWorld> {
  const reader = readerOf(context, server);
  const { capabilities } = reader;
  if (server.machineId === null) return { machine: null, snapshot: null, capabilities };
  const [machine, snapshot] = await lookedUp(
    Promise.all([reader.readMachine(server.machineId), reader.readSnapshot(server.machineId, snapshotId)]),
  );
  return { machine, snapshot, capabilities };
}
