import type { retryServerWorkflow } from '@drydock/contracts/compute-workflows';
import type { WorkflowView } from '@drydock/contracts/workflows';
import type { Sql } from '@drydock/database/sql';
import { audit } from '@drydock/service-kit/audit';
import type { HandlerRequest } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { serverPath } from '../servers/server-names';
import { followHeaders } from './accept-workflow';
import { readServerWorkflow } from './workflow-scope';

type Request = Pick<HandlerRequest<typeof retryServerWorkflow>, 'caller' | 'params' | 'afterCommit'>;

/** Staff's decision over a workflow that waits for it, with its audit entry, in `tx`. Throws `workflow_not_waiting`. */
export async function decideWorkflow(
  context: HandlerContext,
  tx: Tx,
  request: Request,
  decision: { action: string; apply(sql: Sql, workflowId: string): Promise<void> },
): Promise<{ status: 202; headers: Record<string, string>; body: WorkflowView }> {
  const { caller, params } = request;
  const sql = context.database.sql(tx);
  await readServerWorkflow(context, request, sql);
  await decision.apply(sql, params.workflowId);
  const { orgId, mode, keyId: actorKeyId } = caller;
  await audit(sql, {
    orgId,
    mode,
    actorKeyId,
    action: decision.action,
    target: serverPath(params.serverId),
    workflowId: params.workflowId,
  });
  request.afterCommit(() => context.ring(params.workflowId));
  const { view } = await readServerWorkflow(context, request, sql);
  return { status: 202, headers: followHeaders(params.serverId, params.workflowId), body: view };
}
