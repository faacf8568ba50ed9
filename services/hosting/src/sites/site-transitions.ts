import type { SiteStatus } from '@drydock/contracts/hosting/sites';

/** Every allowed change of status; the README's drawing is made from it. */
export const siteTransitions = {
  provisioning: ['active', 'failed'],
  active: ['restoring', 'deleting', 'suspended'],
  suspended: ['restoring', 'deleting', 'active'],
  restoring: ['active', 'suspended'],
  failed: ['deleting'],
  deleting: ['active', 'suspended', 'failed'],
} as const satisfies Record<SiteStatus, readonly SiteStatus[]>;

/** Throws if the change is not in the table: that is a bug, never a caller's mistake. */
export function assertTransition(from: SiteStatus, to: SiteStatus): void {
  const reachable: readonly SiteStatus[] = siteTransitions[from];
  if (!reachable.includes(to)) throw new Error(`a site cannot go from ${from} to ${to}`);
}

/** The statuses from which `to` can be reached. */
export const statusesBefore = (to: SiteStatus): SiteStatus[] => statuses.filter((from) => reaches(from, to));

const statuses = [
  'provisioning',
  'active',
  'suspended',
  'restoring',
  'failed',
  'deleting',
] as const satisfies readonly SiteStatus[];

function reaches(from: SiteStatus, to: SiteStatus): boolean {
  const reachable: readonly SiteStatus[] = siteTransitions[from];
  return reachable.includes(to);
}
