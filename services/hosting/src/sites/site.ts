import type { SitePlatform, SiteStatus } from '@drydock/contracts/sites';
import type { Mode } from '@drydock/contracts/values';

/** Whose world a look-up stays in: one organisation's, and one mode's. */
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
  status: SiteStatus;
  url: string;
  dailyBackups: boolean;
  /** As asked for; see `retentionDaysOf`. */
  backupRetentionDays: number;
  createdAt: Date;
}

/** What one workflow at a time holds: restores, backups and deletion of a site exclude each other. */
export const siteResourceKey = (siteId: string): string => `site:${siteId}`;

export const siteSubject = (siteId: string): { type: 'site'; id: string } => ({ type: 'site', id: siteId });

/** What the audit log names. */
export const sitePath = (siteId: string): string => `/v1/sites/${siteId}`;
