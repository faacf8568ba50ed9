import type { WorkflowParent } from '@drydock/workflow/http/workflow-endpoints';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { readSite } from './find-site';
import { siteSubject } from './site-names';

export const siteParent = (context: HandlerContext): WorkflowParent<Tx, 'siteId'> => ({
  context,
  param: 'siteId',
  subjectOf: siteSubject,
  assertThere: (caller, siteId) => readSite(context, { caller, params: { siteId } }),
});
