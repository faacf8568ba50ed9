import {
  retentionDaysMax,
  type SiteDatabase,
  type SitePlatform,
  type SiteStatus,
} from '@drydock/contracts/hosting/sites';

const readyStatuses: readonly SiteStatus[] = ['active', 'suspended'];

/** A site whose files and database can be read and overwritten. */
export const isReady = (status: SiteStatus): boolean => readyStatuses.includes(status);

/** The reason why the platform takes no backups of a site; '' if it takes them. */
export function unsupportedReasonOf(platform: SitePlatform): '' | 'platform_no_backup' {
  return platform === 'vendor' ? 'platform_no_backup' : '';
}

/**
 * The database that a site has. Sites of our own hosts had Postgres before there was a choice. The databases of the
 * other platforms are not known here, so the result is null.
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
 * How long backups of a site are kept: the days that its plan gives, up to the platform's maximum (interface.md 8.2).
 */
export const retentionDaysOf = (site: { backupRetentionDays: number }): number =>
  Math.min(site.backupRetentionDays, retentionDaysMax);
