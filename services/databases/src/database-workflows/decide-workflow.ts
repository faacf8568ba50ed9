import type { retryDatabaseWorkflow } from '@drydock/contracts/database-workflows';
import type { WorkflowView } from '@drydock/contracts/workflows';
import type { Sql } from '@drydock/database/sql';
import { audit } from '@drydock/service-kit/audit';
import type { HandlerRequest } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { databasePath } from '../databases/database-names';
import { followHeaders } from './accept-workflow';
import { readDatabaseWorkflow } from './workflow-scope';

type Request = Pick<HandlerRequest<typeof retryDatabaseWorkflow>, 'caller' | 'params' | 'afterCommit'>;

/** Staff's decision over a workflow that waits for it, with its audit entry, in `tx`. Throws `workflow_not_waiting`. */
export async function decideWorkflow(
  context: HandlerContext,
  tx: Tx,
  request: Request,
  decision: { action: string; apply(sql: Sql, workflowId: string): Promise<void> },
): Promise<{ status: 202; headers: Record<string, string>; body: WorkflowView }> {
  const { caller, params } = request;
  const sql = context.database.sql(tx);
  await readDatabaseWorkflow(context, request, sql);
  await decision.apply(sql, params.workflowId);
  const { orgId, mode, keyId: actorKeyId } = caller;
  await audit(sql, {
    orgId,
    mode,
    actorKeyId,
    action: decision.action,
    target: databasePath(params.databaseId),
    workflowId: params.workflowId,
  });
  request.afterCommit(() => context.ring(params.workflowId));
  const { view } = await readDatabaseWorkflow(context, request, sql);
  return { status: 202, headers: followHeaders(params.databaseId, params.workflowId), body: view };
}
