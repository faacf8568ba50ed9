import {
  retentionDaysMax,
  type SiteDatabase,
  type SitePlatform,
  type SiteStatus,
} from '@drydock/contracts/hosting/sites';

const readyStatuses: readonly SiteStatus[] = ['active', 'suspended'];

/** A site whose files and database can be read and overwritten. */
export const isReady = (status: SiteStatus): boolean => readyStatuses.includes(status);

/** A request without a query gets the first page. */
export function unsupportedReasonOf(platform: SitePlatform): '' | 'platform_no_backup' {
  return platform === 'vendor' ? 'platform_no_backup' : '';
}

/** The requested page of a site's list, and a function that makes it from rows. */
export function databaseOf({
  platform,
  database,
}: {
  platform: SitePlatform;
  database: SiteDatabase | null;
}): SiteDatabase | null {
  return platform === 'local' ? (database ?? 'postgres') : null;
}

/** Makes the page from up to `asked.limit + 1` rows behind `asked.after`. */
export const retentionDaysOf = (site: { backupRetentionDays: number }): number =>
  Math.min(site.backupRetentionDays, retentionDaysMax);
