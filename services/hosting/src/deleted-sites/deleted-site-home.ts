import type { WorkflowHome } from '../site-workflows/workflow-home';
import { deletedSitePath, deletedSiteSubject } from './deleted-site-names';
import { readDeletedSite } from './find-deleted-site';

/** Workflows that bring a deleted site back are found under its record. */
export const deletedSiteHome: WorkflowHome<'deletedSiteId'> = {
  param: 'deletedSiteId',
  subjectOf: deletedSiteSubject,
  pathOf: deletedSitePath,
  assertThere: (context, caller, deletedSiteId) => readDeletedSite(context, { caller, params: { deletedSiteId } }),
};
