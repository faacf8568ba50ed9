import { problem } from '@drydock/contracts/problem';
import type { Sql } from '@drydock/database/sql';
import type { Caller } from '@drydock/service-kit/internal-token';
import { readWorkflow, type VersionedWorkflow, type WorkflowScope } from '@drydock/workflow/read-workflow';
import { type HandlerContext, ownerOf } from '../context';
import { readServer } from '../servers/find-server';
import { serverSubject } from '../servers/server-names';

interface AboutWorkflow {
  caller: Caller;
  params: { serverId: string; workflowId: string };
}

export const scopeOf = ({ caller, params }: { caller: Caller; params: { serverId: string } }): WorkflowScope => ({
  ...ownerOf(caller),
  subject: serverSubject(params.serverId),
});

/**
 * The workflow, if it was done to this server of the caller's. It outlives its server, so that who follows a deletion sees how it ended.
 * Throws `server_not_found`, or `workflow_not_found` of a server that is there.
 */
export async function readServerWorkflow(context: HandlerContext, request: AboutWorkflow, sql?: Sql): Promise<VersionedWorkflow> {
  const found = await readWorkflow(sql ?? context.database.sql(), request.params.workflowId, scopeOf(request));
  if (found !== undefined) return found;
  await readServer(context, request);
  throw problem('workflow_not_found');
}
