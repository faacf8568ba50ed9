import type { ComputeServerBilling, ServerStatus } from '@drydock/contracts/compute/compute-servers';
import type { Refusal } from '@drydock/workflow/definition';
import { checkDeletion, checkPower, type PowerKind } from '../providers/change.rules';
import type { Machine, MachineSnapshot } from '../providers/compute.types';
import type { Server } from './server.types';

interface SandboxBehaviour {
  failsRollback: boolean;
  failsPower: boolean;
  failsDeletion: boolean;
  isSlow: boolean;
}

/**
 * Reads from a sandbox server's name which errors or slowness it asks for, so that clients can test their own handling.
 * A live server asks for nothing.
 */
export function sandboxBehaviour({ mode, name }: Pick<Server, 'mode' | 'name'>): SandboxBehaviour {
  const asksFor = (word: string): boolean => mode === 'sandbox' && name.includes(word);
  return {
    failsRollback: asksFor('fail_rollback'),
    failsPower: asksFor('fail_power'),
    failsDeletion: asksFor('fail_delete'),
    isSlow: asksFor('slow'),
  };
}

/** Every allowed change of status. A test compares the table with the diagram in the README. */
export const serverTransitions = {
  pending: ['provisioning', 'terminating'],
  provisioning: ['active', 'failed', 'terminating'],
  active: ['suspended', 'resizing', 'terminating'],
  suspended: ['active', 'terminating'],
  resizing: ['active', 'terminating'],
  failed: ['terminating'],
  terminating: ['active', 'suspended', 'failed', 'terminated'],
  terminated: [],
} as const satisfies Record<ServerStatus, readonly ServerStatus[]>;

/** The statuses from which `to` can be reached. */
export const statusesBefore = (to: ServerStatus): ServerStatus[] => statuses.filter((from) => reaches(from, to));

const statuses = [
  'pending',
  'provisioning',
  'active',
  'suspended',
  'resizing',
  'failed',
  'terminating',
  'terminated',
] as const satisfies readonly ServerStatus[];

function reaches(from: ServerStatus, to: ServerStatus): boolean {
  const reachable: readonly ServerStatus[] = serverTransitions[from];
  return reachable.includes(to);
}

/** Checks both `operable` and the status, because neither follows from the other. */
export const refuseInoperable = ({ operable, status }: Pick<Server, 'operable' | 'status'>): Refusal | null =>
  operable && status === 'active' ? null : { code: 'server_not_operable' };

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

/** The refusal of a change of the power, or null. The driver checks the machine again just before it sends. */
export function refusePower(
  server: Pick<Server, 'operable' | 'status'>,
  machine: Pick<Machine, 'isLocked' | 'powerState'> | null,
  kind: PowerKind,
): Refusal | null {
  const reason = machine === null ? null : checkPower(machine, kind);
  // The machine is locked although no workflow works on the server. The provider would refuse the change.
  if (reason === 'locked') return { code: 'operation_in_progress' };
  const inoperable = machine === null ? ({ code: 'server_not_operable' } as const) : refuseInoperable(server);
  return inoperable ?? (reason === null ? null : { code: 'server_not_running' });
}

/** The server's machine and the snapshots that are deleted with it, as the provider reports them now. */
export interface DeletionWorld {
  /** Null if the provider has no machine of this server (any more). */
  machine: Pick<Machine, 'name' | 'isLocked' | 'isDeleteProtected' | 'powerState'> | null;
  snapshots: readonly Pick<MachineSnapshot, 'isDeleteProtected'>[];
}

/** Whether the server's machine has vanished and its number now belongs to another machine. */
export const isAnothers = (
  { name }: Pick<Machine, 'name'>,
  { id, vanishedAt }: Pick<Server, 'id' | 'vanishedAt'>,
): boolean => vanishedAt !== null && name !== id;

/**
 * The refusal of a deletion, or null. The server's status does not matter. The driver checks the machine again just
 * before it sends.
 */
export function refuseDeletion({ id }: Pick<Server, 'id'>, { machine, snapshots }: DeletionWorld): Refusal | null {
  const reason = machine === null ? null : checkDeletion(machine, id);
  if (reason !== null) return { code: codeOfDeletion[reason] };
  return snapshots.some(({ isDeleteProtected }) => isDeleteProtected) ? { code: 'snapshot_protected' } : null;
}

const codeOfDeletion = {
  locked: 'operation_in_progress',
  foreign: 'server_not_operable',
  protected: 'server_protected',
} as const;

type Billed = Pick<
  Server,
  'mode' | 'termMonths' | 'currency' | 'amountMinor' | 'subscriptionId' | 'activeSince' | 'vanishedAt' | 'status'
>;

const hourMs = 3_600_000;

/**
 * The bill, computed from the order and the time. A machine that is gone costs nothing more. The sandbox costs nothing.
 */
export function billingOf(server: Billed, now: Date): ComputeServerBilling {
  const { mode, termMonths, currency, amountMinor, subscriptionId } = server;
  const paidSince = mode === 'sandbox' ? null : server.activeSince;
  const status =
    paidSince === null ? 'none' : server.status === 'terminated' || server.vanishedAt !== null ? 'cancelled' : 'active';
  const common = {
    currency,
    amount_minor: amountMinor,
    subscription_id: paidSince === null ? null : subscriptionId,
    status,
  } as const;
  if (termMonths !== null) {
    const until = paidSince === null ? null : addMonths(paidSince, termMonths).toISOString();
    return {
      ...common,
      mode: 'term',
      interval: 'month',
      term_months: termMonths,
      started_hours: null,
      charged_until: until,
    };
  }
  const hours = paidSince === null ? 0 : startedHours(paidSince, server.vanishedAt ?? now);
  const until = paidSince === null ? null : new Date(paidSince.getTime() + hours * hourMs).toISOString();
  return {
    ...common,
    mode: 'metered',
    interval: 'hour',
    term_months: null,
    started_hours: hours,
    charged_until: until,
  };
}

/** The number of hours that have begun. The first hour begins at once. */
export const startedHours = (since: Date, until: Date): number =>
  Math.floor(Math.max(0, until.getTime() - since.getTime()) / hourMs) + 1;

/** The same day of a later month, or the last day of that month if it is shorter. */
export function addMonths(from: Date, months: number): Date {
  const to = new Date(from);
  const day = to.getUTCDate();
  to.setUTCDate(1);
  to.setUTCMonth(to.getUTCMonth() + months);
  const daysInMonth = new Date(Date.UTC(to.getUTCFullYear(), to.getUTCMonth() + 1, 0)).getUTCDate();
  to.setUTCDate(Math.min(day, daysInMonth));
  return to;
}
