import type { ComputeReason, Machine, MachineSnapshot } from './compute.types';

export type PowerKind = 'power_on' | 'power_off' | 'reboot';

/**
 * The reason why the provider would refuse a rollback of the machine now, or null. If there are several reasons, the
 * first check below decides.
 */
export function checkRollback(machine: Machine, snapshot: MachineSnapshot): ComputeReason | null {
  if (machine.isLocked) return 'locked';
  if (snapshot.status !== 'available') return 'snapshot_not_ready';
  if (machine.isRebuildProtected) return 'protected';
  if (snapshot.newerIds.length > 0) return 'newer_snapshots';
  if (differs(snapshot.architecture, machine.architecture)) return 'incompatible';
  if (snapshot.diskGb !== null && machine.diskGb !== null && snapshot.diskGb > machine.diskGb) return 'incompatible';
  return null;
}

const differs = (one: string | null, other: string | null): boolean => one !== null && other !== null && one !== other;

/** The reason why the machine's power cannot be changed now, or null. */
export function checkPower(
  machine: Pick<Machine, 'isLocked' | 'powerState'>,
  kind: PowerKind,
): 'locked' | 'not_running' | null {
  if (machine.isLocked) return 'locked';
  return kind === 'reboot' && machine.powerState === 'off' ? 'not_running' : null;
}

/** Whether the machine is already in the state that the change would bring about. */
export const isPowered = ({ powerState }: Pick<Machine, 'powerState'>, kind: PowerKind): boolean =>
  (kind === 'power_on' && powerState === 'on') || (kind === 'power_off' && powerState === 'off');

/** The reason why the machine cannot be deleted now, or null. `name` is Drydock's id of the server. */
export function checkDeletion(
  machine: Pick<Machine, 'name' | 'isLocked' | 'isDeleteProtected'>,
  name: string,
): 'foreign' | 'locked' | 'protected' | null {
  // The lock is checked before the name, because a machine that is still being made may have no name.
  if (machine.isLocked) return 'locked';
  if (machine.name !== name) return 'foreign';
  return machine.isDeleteProtected ? 'protected' : null;
}
