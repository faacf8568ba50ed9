import { checkDeletion, checkPower, checkRollback, type PowerKind } from './change.rules';
import type { Machine } from './compute.types';
import { ComputeError, type ComputeReader } from './compute-provider';

/**
 * The last check of every driver before it sends a rollback, which cannot be undone. @throws ComputeError with a final
 * reason, or `locked`
 */
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
  if (snapshot === null)
    throw new ComputeError('snapshot_not_found', `machine ${machineId} has no snapshot ${snapshotId}`);
  const reason = checkRollback(machine, snapshot);
  if (reason !== null) throw new ComputeError(reason, `rollback of ${machineId} to ${snapshotId} is not allowed now`);
}

/**
 * The last check before a change of the power. Resolves with the machine. @throws ComputeError with a final reason, or
 * `locked`
 */
export async function assertPowerAllowed(
  reader: ComputeReader,
  { machineId, kind }: { machineId: string; kind: PowerKind },
  signal?: AbortSignal,
): Promise<Machine> {
  const machine = await reader.readMachine(machineId, signal);
  if (machine === null) throw new ComputeError('machine_not_found', `no machine ${machineId}`);
  const reason = checkPower(machine, kind);
  if (reason !== null) throw new ComputeError(reason, `${kind} of ${machineId} is not allowed now`);
  return machine;
}

/**
 * The last check before a deletion. Resolves with the machine, or with null if it does not exist (any more). @throws
 * ComputeError with a final reason, or `locked`
 */
export async function assertDeletionAllowed(
  reader: ComputeReader,
  { machineId, name }: { machineId: string; name: string },
  signal?: AbortSignal,
): Promise<Machine | null> {
  const machine = await reader.readMachine(machineId, signal);
  if (machine === null) return null;
  const reason = checkDeletion(machine, name);
  if (reason !== null)
    throw new ComputeError(
      reason,
      `deletion of ${machineId} is not allowed now: it is ${machine.name}, wanted is ${name}`,
    );
  return machine;
}
