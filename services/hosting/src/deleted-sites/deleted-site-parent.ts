import type { WorkflowParent } from '@drydock/workflow/http/workflow-endpoints';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { deletedSiteSubject } from './deleted-site-names';
import { readDeletedSite } from './find-deleted-site';

/** Workflows that bring a deleted site back are found under its record. */
export const deletedSiteParent = (context: HandlerContext): WorkflowParent<Tx, 'deletedSiteId'> => ({
  context,
  param: 'deletedSiteId',
  subjectOf: deletedSiteSubject,
  assertThere: (caller, deletedSiteId) => readDeletedSite(context, { caller, params: { deletedSiteId } }),
});
