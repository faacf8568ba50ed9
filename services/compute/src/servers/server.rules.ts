import type { Refusal } from '@drydock/workflow/definition/refusal.rules';
import type { Server } from './server.types';

/** `operable` is read as it stands, and the status beside it: neither follows from the other. */
export const refuseInoperable = ({ operable, status }: Pick<Server, 'operable' | 'status'>): Refusal | null =>
  operable && status === 'active' ? null : { code: 'server_not_operable' };

/** May the machine be overwritten with an image? Asked again by the provider's driver in the moment before it sends. */
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
