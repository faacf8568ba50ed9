import type { WorkTarget } from '@drydock/workflow/http/accept-workflow';

/** What one workflow at a time holds: restores, backups and deletion of a site exclude each other. */
export const siteResourceKey = (siteId: string): string => `site:${siteId}`;

export const siteSubject = (siteId: string): { type: 'site'; id: string } => ({ type: 'site', id: siteId });

/** What the audit log names. */
export const sitePath = (siteId: string): string => `/v1/sites/${siteId}`;

/** What a workflow that is done to a site is accepted with. */
export const onSite = (siteId: string): WorkTarget => ({
  resourceKey: siteResourceKey(siteId),
  subject: siteSubject(siteId),
  path: sitePath(siteId),
});
