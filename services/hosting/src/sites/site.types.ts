import type { SiteDatabase, SitePlatform, SiteStatus } from '@drydock/contracts/hosting/sites';
import type { Metadata, Mode } from '@drydock/contracts/platform/values';
import type { Caller } from '@drydock/service/access';
import type { WorkTarget } from '@drydock/workflow/http';

/** Workflows with the same key exclude each other, so a site has at most one unfinished workflow. */
export const siteResourceKey = (siteId: string): string => `site:${siteId}`;

export const siteSubject = (siteId: string): { type: 'site'; id: string } => ({ type: 'site', id: siteId });

/** The path under which the audit log names a site. */
export const sitePath = (siteId: string): string => `/v1/sites/${siteId}`;

export const onSite = (siteId: string): WorkTarget => ({
  resourceKey: siteResourceKey(siteId),
  subject: siteSubject(siteId),
  path: sitePath(siteId),
});

/** The organisation of work that belongs to no customer. */
export const platformOrgId = '00000000-0000-0000-0000-000000000000';

export const platformSubject = { type: 'platform', id: platformOrgId } as const;

/** Workflows with the same key exclude each other, so a kind has at most one unfinished workflow in each mode. */
export const platformResourceKey = (kind: string, mode: string): string => `platform:${mode}:${kind}`;

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
  /** The days that the plan promises. `retentionDaysOf` gives the days that count. */
  backupRetentionDays: number;
  metadata: Metadata;
  createdAt: Date;
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
