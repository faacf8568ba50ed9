import type { ComputeReason, Machine, MachineSnapshot } from './compute.types';

export type PowerKind = 'power_on' | 'power_off' | 'reboot';

/**
 * The reason why a rollback would be refused in the provider's present state, in the order in which the surface
 * answers; null if it would not.
 */
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

/** The reason why the power could not be changed in the provider's present state; null if it could. */
export function judgePower(
  machine: Pick<Machine, 'isLocked' | 'powerState'>,
  kind: PowerKind,
): 'locked' | 'not_running' | null {
  if (machine.isLocked) return 'locked';
  return kind === 'reboot' && machine.powerState === 'off' ? 'not_running' : null;
}

/** Whether there is nothing to do. */
export const isPowered = ({ powerState }: Pick<Machine, 'powerState'>, kind: PowerKind): boolean =>
  (kind === 'power_on' && powerState === 'on') || (kind === 'power_off' && powerState === 'off');

/**
 * The reason why the machine could not be deleted in the provider's present state; null if it could. `name`: our id of
 * its server.
 */
export function judgeDeletion(
  machine: Pick<Machine, 'name' | 'isLocked' | 'isDeleteProtected'>,
  name: string,
): 'foreign' | 'locked' | 'protected' | null {
  // The lock is checked before the name, because a machine that is still being made may have no name.
  if (machine.isLocked) return 'locked';
  if (machine.name !== name) return 'foreign';
  return machine.isDeleteProtected ? 'protected' : null;
}
