import type { SiteDatabase, SitePlatform, SiteStatus } from '@drydock/contracts/hosting/sites';
import type { Metadata, Mode } from '@drydock/contracts/platform/values';

/** The organisation and the mode that a look-up is limited to. */
export interface Owner {
  orgId: string;
  mode: Mode;
}

export interface Site {
  id: string;
  orgId: string;
  mode: Mode;
  name: string;
  primaryDomain: string;
  platform: SitePlatform;
  /** Null on platforms that offer no choice. */
  database: SiteDatabase | null;
  status: SiteStatus;
  url: string;
  dailyBackups: boolean;
  /** The requested number; see `retentionDaysOf`. */
  backupRetentionDays: number;
  metadata: Metadata;
  createdAt: Date;
}
