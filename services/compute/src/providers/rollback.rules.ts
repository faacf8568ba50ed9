import type { Machine, MachineSnapshot } from './compute-machine.types';
import type { ComputeReason } from './compute-reason.types';

/** Why a rollback would be refused by what the provider says now, in the order in which the surface answers; null when it would not. */
export function judgeRollback(machine: Machine, snapshot: MachineSnapshot): ComputeReason | null {
  if (machine.isLocked) return 'locked';
  if (snapshot.status !== 'available') return 'snapshot_not_ready';
  if (machine.isRebuildProtected) return 'protected';
  if (snapshot.newerIds.length > 0) return 'newer_snapshots';
  if (differs(snapshot.architecture, machine.architecture)) return 'incompatible';
  if (snapshot.diskGb !== null && machine.diskGb !== null && snapshot.diskGb > machine.diskGb) return 'incompatible';
  return null;
}

const differs = (one: string | null, other: string | null): boolean => one !== null && other !== null && one !== other;
