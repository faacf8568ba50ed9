import { lookedUp } from '../changes/provider-failure';
import type { HandlerContext } from '../context/context';
import type { MachineSnapshot } from '../providers/compute.types';
import type { ComputeReader } from '../providers/compute-provider';
import { readerOf } from '../servers/look-at-machine';
import type { Server } from '../servers/server.types';
import type { RollbackWorld } from './snapshot.rules';

/**
 * The machine's snapshot as its provider knows it; null if it has none with that id. A text that cannot be an id is not
 * sent.
 */
export const readNamedSnapshot = async (
  reader: ComputeReader,
  machineId: string,
  snapshotId: string,
  signal: AbortSignal,
): Promise<MachineSnapshot | null> => (snapshotId === '' ? null : reader.readSnapshot(machineId, snapshotId, signal));

/** The facts that decide a rollback, read from the provider now. */
export async function lookAtSnapshot(
  context: Pick<HandlerContext, 'targets'>,
  server: Server,
  snapshotId: string,
): Promise<RollbackWorld> {
  const reader = readerOf(context, server);
  const { capabilities } = reader;
  const { machineId } = server;
  if (machineId === null) return { machine: null, snapshot: null, capabilities };
  const [machine, snapshot] = await lookedUp((signal) =>
    Promise.all([reader.readMachine(machineId, signal), readNamedSnapshot(reader, machineId, snapshotId, signal)]),
  );
  return { machine, snapshot, capabilities };
}
