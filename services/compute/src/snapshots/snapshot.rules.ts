import type { Refusal } from '@drydock/workflow/definition';
import { checkRollback } from '../providers/change.rules';
import type { Machine, MachineSnapshot } from '../providers/compute.types';
import { refuseInoperable } from '../servers/server.rules';
import type { Server } from '../servers/server.types';

/** The machine, the snapshot of the request and the provider's capabilities, as the provider reports them now. */
export interface RollbackWorld {
  machine: Machine | null;
  /** Null if this machine has no snapshot with that id. */
  snapshot: MachineSnapshot | null;
  capabilities: readonly string[];
  /** See `changesRootPassword` of ComputeReader. */
  changesRootPassword: boolean;
}

type Standing = Pick<Server, 'operable' | 'status'>;

const codeOfReason = {
  snapshot_not_ready: 'snapshot_not_ready',
  protected: 'rebuild_protected',
  newer_snapshots: 'newer_snapshots_exist',
  incompatible: 'snapshot_incompatible',
} as const;

const hasCode = (reason: string | null): reason is keyof typeof codeOfReason =>
  reason !== null && Object.hasOwn(codeOfReason, reason);

/**
 * The refusal of a rollback, or null. The reasons are checked in the order of decisions.md 1. The caller has checked
 * for an unfinished workflow.
 */
export function refuseRollback(server: Standing, { machine, snapshot, capabilities }: RollbackWorld): Refusal | null {
  // The machine is locked although no workflow works on the server. The provider would refuse the rollback.
  if (machine?.isLocked === true) return { code: 'operation_in_progress' };
  const hasSnapshots = capabilities.includes('compute:snapshots');
  if (hasSnapshots && snapshot === null) return { code: 'snapshot_not_on_server' };
  if (snapshot !== null && snapshot.status !== 'available') return { code: 'snapshot_not_ready' };
  const inoperable = machine === null ? ({ code: 'server_not_operable' } as const) : refuseInoperable(server);
  if (inoperable !== null) return inoperable;
  if (!hasSnapshots) return { code: 'snapshots_unsupported' };
  const reason = machine === null || snapshot === null ? null : checkRollback(machine, snapshot);
  return hasCode(reason) ? { code: codeOfReason[reason] } : null;
}

export function refuseSnapshot(server: Standing, capabilities: readonly string[]): Refusal | null {
  return (
    refuseInoperable(server) ?? (capabilities.includes('compute:snapshots') ? null : { code: 'snapshots_unsupported' })
  );
}

/** The refusal of a further snapshot of a server that has `used` snapshots, or null. */
export const refuseFurther = (used: number, limit: number): Refusal | null =>
  used < limit ? null : { code: 'quota_exceeded', extra: { limit, used } };

export function refuseDeletion(snapshot: MachineSnapshot | null): Refusal | null {
  if (snapshot === null) return { code: 'snapshot_not_on_server' };
  return snapshot.isDeleteProtected ? { code: 'snapshot_protected' } : null;
}
