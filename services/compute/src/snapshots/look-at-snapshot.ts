import { lookedUp } from '../changes/provider-unavailable';
import type { HandlerContext } from '../context';
import { readerOf } from '../servers/look-at-machine';
import type { Server } from '../servers/server.types';
import type { RollbackWorld } from './snapshot.rules';

/** What a rollback is decided by, asked of the provider now. */
export async function lookAtSnapshot(context: Pick<HandlerContext, 'targets'>, server: Server, snapshotId: string): Promise<RollbackWorld> {
  const reader = readerOf(context, server);
  const { capabilities } = reader;
  const { machineId } = server;
  if (machineId === null) return { machine: null, snapshot: null, capabilities };
  const [machine, snapshot] = await lookedUp((signal) =>
    Promise.all([reader.readMachine(machineId, signal), reader.readSnapshot(machineId, snapshotId, signal)]),
  );
  return { machine, snapshot, capabilities };
}
