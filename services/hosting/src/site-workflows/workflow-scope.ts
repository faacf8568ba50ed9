import { problem } from '@drydock/contracts/problem';
import type { Sql } from '@drydock/database/sql';
import type { Caller } from '@drydock/service-kit/internal-token';
import { readWorkflow, type VersionedWorkflow, type WorkflowScope } from '@drydock/workflow/read-workflow';
import { type HandlerContext, ownerOf } from '../context';
import { readSite } from '../sites/find-site';
import { siteSubject } from '../sites/site-names';

interface AboutWorkflow {
  caller: Caller;
  params: { siteId: string; workflowId: string };
}

export const scopeOf = ({ caller, params }: { caller: Caller; params: { siteId: string } }): WorkflowScope => ({
  ...ownerOf(caller),
  subject: siteSubject(params.siteId),
});

/**
 * The workflow, if it was done to this site of the caller's. It outlives its site, so that who follows a deletion sees how it ended.
 * Throws `site_not_found`, or `workflow_not_found` of a site that is there.
 */
export async function readSiteWorkflow(context: HandlerContext, request: AboutWorkflow, sql?: Sql): Promise<VersionedWorkflow> {
  const found = await readWorkflow(sql ?? context.database.sql(), request.params.workflowId, scopeOf(request));
  if (found !== undefined) return found;
  await readSite(context, request);
  throw problem('workflow_not_found');
}
