import type { DeleteReason } from '@drydock/contracts/hosting/deleted-sites';
import type { SiteDatabase, SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Mode } from '@drydock/contracts/platform/values';

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
