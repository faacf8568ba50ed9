import type { Refusal } from '@drydock/workflow/definition/refusal.rules';
import { judgeDeletion, judgePower, type PowerKind } from '../providers/change.rules';
import type { Machine, MachineSnapshot } from '../providers/compute-machine.types';
import type { Server } from './server.types';

/** Reads `operable` and the status separately: neither follows from the other. */
export const refuseInoperable = ({ operable, status }: Pick<Server, 'operable' | 'status'>): Refusal | null =>
  operable && status === 'active' ? null : { code: 'server_not_operable' };

/** Whether the machine may be overwritten with an image. The provider's driver asks again just before it sends. */
export function refuseRebuild(
  server: Pick<Server, 'operable' | 'status'>,
  machine: { isLocked: boolean; isRebuildProtected: boolean } | null,
  capabilities: readonly string[],
): Refusal | null {
  if (machine?.isLocked === true) return { code: 'operation_in_progress' };
  if (!capabilities.includes('compute:rebuild')) return { code: 'rebuild_unsupported' };
  const inoperable = machine === null ? ({ code: 'server_not_operable' } as const) : refuseInoperable(server);
  if (inoperable !== null) return inoperable;
  return machine?.isRebuildProtected === true ? { code: 'rebuild_protected' } : null;
}

/** Whether the power may be changed. The driver asks its part again just before it sends. */
export function refusePower(
  server: Pick<Server, 'operable' | 'status'>,
  machine: Pick<Machine, 'isLocked' | 'powerState'> | null,
  kind: PowerKind,
): Refusal | null {
  const reason = machine === null ? null : judgePower(machine, kind);
  // An action that Drydock did not start locks the machine, so the provider would refuse.
  if (reason === 'locked') return { code: 'operation_in_progress' };
  const inoperable = machine === null ? ({ code: 'server_not_operable' } as const) : refuseInoperable(server);
  return inoperable ?? (reason === null ? null : { code: 'server_not_running' });
}

/** The server's machine and the snapshots that go with it, as the provider reports them now. */
export interface DeletionWorld {
  /** Null: the provider has no machine of this server (any more). */
  machine: Pick<Machine, 'name' | 'isLocked' | 'isDeleteProtected' | 'powerState'> | null;
  snapshots: readonly Pick<MachineSnapshot, 'isDeleteProtected'>[];
}

/** Whether the server's machine has vanished and its number now belongs to another one. */
export const isAnothers = (
  { name }: Pick<Machine, 'name'>,
  { id, vanishedAt }: Pick<Server, 'id' | 'vanishedAt'>,
): boolean => vanishedAt !== null && name !== id;

/** Whether the server may be deleted, whatever its status. The driver asks its part again just before it sends. */
export function refuseDeletion({ id }: Pick<Server, 'id'>, { machine, snapshots }: DeletionWorld): Refusal | null {
  const reason = machine === null ? null : judgeDeletion(machine, id);
  if (reason !== null) return { code: codeOfDeletion[reason] };
  return snapshots.some(({ isDeleteProtected }) => isDeleteProtected) ? { code: 'snapshot_protected' } : null;
}

const codeOfDeletion = {
  locked: 'operation_in_progress',
  foreign: 'server_not_operable',
  protected: 'server_protected',
} as const;
