import type { DeletedSiteReason, DeleteReason } from '@drydock/contracts/hosting/deleted-sites';
import type { SiteDatabase, SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Mode } from '@drydock/contracts/platform/values';
import { retentionDaysOf } from '../sites/site.rules';

export const deletedSiteSubject = (deletedSiteId: string): { type: 'deleted_site'; id: string } => ({
  type: 'deleted_site',
  id: deletedSiteId,
});

/** The path under which the audit log names a deleted site. */
export const deletedSitePath = (deletedSiteId: string): string => `/v1/sites/deleted/${deletedSiteId}`;

/** A site that was deleted, with all that is needed to make it again. */
export interface DeletedSite {
  id: string;
  siteId: string;
  orgId: string;
  mode: Mode;
  name: string;
  primaryDomain: string;
  /**
   * The time when the organisation proved that it controls the domain. Null if the organisation never proved this. The
   * site is then restored with an unproven domain.
   */
  domainProvenAt: Date | null;
  platform: SitePlatform;
  /** The database in the site's row. Null stands for the default database of the site's platform. */
  database: SiteDatabase | null;
  /** The metadata of the site, which is not interpreted. */
  metadata: unknown;
  dailyBackups: boolean;
  backupRetentionDays: number;
  /** The time when the site was made. Null for sites that were deleted before this time was recorded. */
  siteCreatedAt: Date | null;
  /** The sequence number of the site's last backup. A newer archive always has a greater number. */
  backupSequence: bigint;
  /** Null: there was nothing to back up. */
  backupId: string | null;
  reason: DeleteReason;
  deletedAt: Date;
  deletedBy: string | null;
  purgedAt: Date | null;
  restoredAt: Date | null;
  dataRemovedAt: Date | null;
}

const dayMs = 86_400_000;

/** The record of a deleted site, and the other facts that the rules need. */
export interface DeletedSiteWorld {
  record: Pick<DeletedSite, 'restoredAt' | 'purgedAt' | 'deletedAt' | 'backupRetentionDays' | 'reason'>;
  /** Whether the last backup's object was found in the storage just now. */
  hasObject: boolean;
  /**
   * Whether another site has the domain, as `isHeld` finds. A site of another organisation counts only if both sites
   * have proven the domain.
   */
  isDomainHeld: boolean;
  /** Whether the caller is staff, who may also restore a site that is held for abuse. */
  isStaff: boolean;
}

/**
 * The time when the backup is removed. The time is computed from the current retention, so a change of the platform's
 * maximum changes it.
 */
export const purgeDueAt = (record: Pick<DeletedSite, 'deletedAt' | 'backupRetentionDays'>): Date =>
  new Date(record.deletedAt.getTime() + retentionDaysOf(record) * dayMs);

/** A site whose retention is over counts as purged, whether or not the purge has run. */
export const isPurged = (record: DeletedSiteWorld['record'], now: Date): boolean =>
  record.purgedAt !== null || purgeDueAt(record) <= now;

/**
 * The first reason why the site cannot be restored, in the order below. '' if it can be restored. The field
 * `restorable` and the request's own check both use this rule.
 */
export function reasonNotRestorable(
  { record, hasObject, isDomainHeld, isStaff }: DeletedSiteWorld,
  now: Date,
): DeletedSiteReason {
  if (record.restoredAt !== null) return 'already_restored';
  if (isPurged(record, now)) return 'purged';
  if (record.reason === 'abuse' && !isStaff) return 'abuse_hold';
  if (!hasObject) return 'no_backup';
  return isDomainHeld ? 'domain_in_use' : '';
}

/**
 * Whether the storage must be asked for the backup. False if the restore is refused for a reason that does not depend
 * on the backup.
 */
export const needsObject = ({ record, isStaff }: Pick<DeletedSiteWorld, 'record' | 'isStaff'>, now: Date): boolean =>
  reasonNotRestorable({ record, isStaff, hasObject: true, isDomainHeld: false }, now) === '';
