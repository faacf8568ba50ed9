import type { WorkTarget } from '@drydock/workflow/http/accept-workflow';

/** Workflows with the same key exclude each other: restores, backups and the deletion of a site. */
export const siteResourceKey = (siteId: string): string => `site:${siteId}`;

export const siteSubject = (siteId: string): { type: 'site'; id: string } => ({ type: 'site', id: siteId });

/** The path under which the audit log names a site. */
export const sitePath = (siteId: string): string => `/v1/sites/${siteId}`;

/** The target of a workflow on a site. */
export const onSite = (siteId: string): WorkTarget => ({
  resourceKey: siteResourceKey(siteId),
  subject: siteSubject(siteId),
  path: sitePath(siteId),
});
