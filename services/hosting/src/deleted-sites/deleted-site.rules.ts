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

/** The record of a deleted site: all that is needed to make the site again. */
export interface DeletedSite {
  id: string;
  siteId: string;
  orgId: string;
  mode: Mode;
  name: string;
  primaryDomain: string;
  /**
   * The time when the organisation proved that it controls the domain. Null if it never did; then the site comes back
   * with an unproven domain.
   */
  domainProvenAt: Date | null;
  platform: SitePlatform;
  /** The database of the site. Null means the default of its platform. */
  database: SiteDatabase | null;
  metadata: unknown;
  dailyBackups: boolean;
  backupRetentionDays: number;
  /** Null if an earlier version of Drydock, which did not record this time, deleted the site. */
  siteCreatedAt: Date | null;
  /** The sequence number of the site's last backup or copy. The next one gets a greater number. */
  backupSequence: bigint;
  /** Null if there is no backup to restore the site from. */
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
  /** Whether the storage has just been found to hold the last backup. */
  hasObject: boolean;
  /**
   * Whether another site holds the domain (`isHeld`). A site of another organisation counts only if both sites have
   * proven the domain.
   */
  isDomainHeld: boolean;
  /** Staff may also restore a site that is held for abuse. */
  isStaff: boolean;
}

/**
 * The time until which the site can be restored. It is computed with the present `retentionDaysMax`, so a change of
 * that maximum moves the time also for sites that are already deleted.
 */
export const purgeDueAt = (record: Pick<DeletedSite, 'deletedAt' | 'backupRetentionDays'>): Date =>
  new Date(record.deletedAt.getTime() + retentionDaysOf(record) * dayMs);

/** A site counts as purged from `purgeDueAt` on, even before the purge has run. */
export const isPurged = (record: DeletedSiteWorld['record'], now: Date): boolean =>
  record.purgedAt !== null || purgeDueAt(record) <= now;

/**
 * The first reason, in the order below, why the site cannot be restored; '' if there is none. The field `restorable`
 * and the request use this rule.
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
 * Whether the storage must be asked for the backup. False if `reasonNotRestorable` gives one of the reasons that it
 * checks before `no_backup`.
 */
export const needsObject = ({ record, isStaff }: Pick<DeletedSiteWorld, 'record' | 'isStaff'>, now: Date): boolean =>
  reasonNotRestorable({ record, isStaff, hasObject: true, isDomainHeld: false }, now) === '';
