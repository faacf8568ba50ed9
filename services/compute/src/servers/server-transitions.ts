import type { ServerStatus } from '@drydock/contracts/compute/compute-servers';

/** Every allowed change of status; the README's drawing is made from it. */
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
