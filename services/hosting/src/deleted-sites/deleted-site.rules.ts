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
  /** The time of the site's proof of its domain. A site that had only claimed the domain is restored with a claim. */
  domainProvenAt: Date | null;
  platform: SitePlatform;
  /** The database in the site's row. It is null, too, if the site had the default one of its platform. */
  database: SiteDatabase | null;
  /** The metadata of the site, which is not interpreted. */
  metadata: unknown;
  dailyBackups: boolean;
  backupRetentionDays: number;
  /** The time when the site was made; null for sites that were deleted before this was kept. */
  siteCreatedAt: Date | null;
  /** The sequence number of its last backup: a newer archive always has a greater one. */
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

/** Facts from outside the record that the rules need. */
export interface DeletedSiteWorld {
  record: Pick<DeletedSite, 'restoredAt' | 'purgedAt' | 'deletedAt' | 'backupRetentionDays' | 'reason'>;
  /** Whether the last backup's object was found in the storage just now. */
  hasObject: boolean;
  /** Whether another site has the domain, as far as the owner may know. */
  isDomainHeld: boolean;
  /** Whether the caller is staff, who may pass an abuse hold. */
  isStaff: boolean;
}

/** The time when the backup is removed, by the retention that holds now: a change of the policy moves it. */
export const purgeDueAt = (record: Pick<DeletedSite, 'deletedAt' | 'backupRetentionDays'>): Date =>
  new Date(record.deletedAt.getTime() + retentionDaysOf(record) * dayMs);

/** A closed window counts as purged, whether or not the purge has run. */
export const isPurged = (record: DeletedSiteWorld['record'], now: Date): boolean =>
  record.purgedAt !== null || purgeDueAt(record) <= now;

/** The reason why it cannot be restored, in this order; '' if it can. `restorable` shows it, and the guard asks it. */
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

/** Whether the storage needs to be asked: refusals that come before the backup do not depend on it. */
export const needsObject = ({ record, isStaff }: Pick<DeletedSiteWorld, 'record' | 'isStaff'>, now: Date): boolean =>
  reasonNotRestorable({ record, isStaff, hasObject: true, isDomainHeld: false }, now) === '';
