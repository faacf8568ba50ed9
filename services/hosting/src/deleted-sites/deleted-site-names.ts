export const deletedSiteSubject = (deletedSiteId: string): { type: 'deleted_site'; id: string } => ({
  type: 'deleted_site',
  id: deletedSiteId,
});

/** The path under which the audit log names a deleted site. */
export const deletedSitePath = (deletedSiteId: string): string => `/v1/sites/deleted/${deletedSiteId}`;
