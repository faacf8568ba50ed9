import { retentionDaysMax, type SiteDatabase, type SitePlatform, type SiteStatus } from '@drydock/contracts/hosting/sites';

const readyStatuses: readonly SiteStatus[] = ['active', 'suspended'];

/** A site whose files and database can be read and overwritten. */
export const isReady = (status: SiteStatus): boolean => readyStatuses.includes(status);

/** Why the hosting platform cannot be backed up at all; '' when it can. */
export function unsupportedReasonOf(platform: SitePlatform): '' | 'platform_no_backup' {
  return platform === 'vendor' ? 'platform_no_backup' : '';
}

/** Which database a site has. Our own hosts gave Postgres to each before there was a choice; what the others give is not known here. */
export function databaseOf({ platform, database }: { platform: SitePlatform; database: SiteDatabase | null }): SiteDatabase | null {
  return platform === 'local' ? (database ?? 'postgres') : null;
}

/** The plan's entitlement, clamped to the platform's maximum (interface.md 8.2). */
export const retentionDaysOf = (site: { backupRetentionDays: number }): number => Math.min(site.backupRetentionDays, retentionDaysMax);
