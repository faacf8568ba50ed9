export const deletedSiteSubject = (deletedSiteId: string): { type: 'deleted_site'; id: string } => ({
  type: 'deleted_site',
  id: deletedSiteId,
});

/** What the audit log names. */
export const deletedSitePath = (deletedSiteId: string): string => `/v1/sites/deleted/${deletedSiteId}`;
