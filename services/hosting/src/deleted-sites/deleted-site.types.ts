import type { DeleteReason } from '@drydock/contracts/hosting/deleted-sites';
import type { SiteDatabase, SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Mode } from '@drydock/contracts/platform/values';

/** A site that was deleted, with all that is needed to make it again. */
export interface DeletedSite {
  id: string;
  siteId: string;
  orgId: string;
  mode: Mode;
  name: string;
  primaryDomain: string;
  /** As the site had it: whoever had only claimed the domain comes back with a claim. */
  domainProvenAt: Date | null;
  platform: SitePlatform;
  /** As the site's row had it: null too where it had what its platform gives. */
  database: SiteDatabase | null;
  /** As the site had it, unread. */
  metadata: unknown;
  dailyBackups: boolean;
  backupRetentionDays: number;
  /** When the site was made; null of what was deleted before this was kept. */
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
