import { ComputeError } from './compute-error';
import type { ComputeReader } from './compute-provider';
import { judgeRollback } from './rollback.rules';

/** What every driver asks in the moment before it sends a rollback: there is no way back from it. @throws ComputeError final, or `locked` */
export async function assertRollbackAllowed(
  reader: ComputeReader,
  { machineId, snapshotId }: { machineId: string; snapshotId: string },
  signal?: AbortSignal,
): Promise<void> {
  const [machine, snapshot] = await Promise.all([
    reader.readMachine(machineId, signal),
    reader.readSnapshot(machineId, snapshotId, signal),
  ]);
  if (machine === null) throw new ComputeError('machine_not_found', `no machine ${machineId}`);
  if (snapshot === null) throw new ComputeError('snapshot_not_found', `machine ${machineId} has no snapshot ${snapshotId}`);
  const reason = judgeRollback(machine, snapshot);
  if (reason !== null) throw new ComputeError(reason, `rollback of ${machineId} to ${snapshotId} is not allowed now`);
}
