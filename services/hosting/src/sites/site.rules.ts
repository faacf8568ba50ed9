import {
  retentionDaysMax,
  type SiteDatabase,
  type SitePlatform,
  type SiteStatus,
} from '@drydock/contracts/hosting/sites';
import type { Site } from './site.types';

/**
 * Words in the name of a sandbox site make its restores fail or last, so that a customer can test how a client handles
 * that (decisions.md 5). The name of a live site has no effect.
 */
export function sandboxBehaviour(
  { mode, name }: Pick<Site, 'mode' | 'name'>,
  failure: 'fail_restore',
): { fails: boolean; slows: boolean } {
  const isSandbox = mode === 'sandbox';
  return { fails: isSandbox && name.includes(failure), slows: isSandbox && name.includes('slow') };
}

/** Every allowed change of status. A test compares it with the drawing in the README. */
export const siteTransitions = {
  provisioning: ['active', 'failed'],
  active: ['restoring', 'deleting', 'suspended'],
  suspended: ['restoring', 'deleting', 'active'],
  restoring: ['active', 'suspended'],
  failed: ['deleting'],
  deleting: ['active', 'suspended', 'failed'],
} as const satisfies Record<SiteStatus, readonly SiteStatus[]>;

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

const readyStatuses: readonly SiteStatus[] = ['active', 'suspended'];

/** Whether a site of this status has files and a database that can be read and overwritten. */
export const isReady = (status: SiteStatus): boolean => readyStatuses.includes(status);

/** The reason why Drydock cannot back up sites of the platform; '' if it can. */
export function unsupportedReasonOf(platform: SitePlatform): '' | 'platform_no_backup' {
  return platform === 'vendor' ? 'platform_no_backup' : '';
}

/**
 * The database of a site, from its row. A `local` site whose row has none was made before sites could choose, and has
 * Postgres. On other platforms the result is null, because Drydock does not know which database a site has.
 */
export function databaseOf({
  platform,
  database,
}: {
  platform: SitePlatform;
  database: SiteDatabase | null;
}): SiteDatabase | null {
  return platform === 'local' ? (database ?? 'postgres') : null;
}

/**
 * How many days the backups of a site are kept: as many as its plan has, but at most `retentionDaysMax` (interface.md
 * 8.2).
 */
export const retentionDaysOf = (site: { backupRetentionDays: number }): number =>
  Math.min(site.backupRetentionDays, retentionDaysMax);
