import type { WorkflowView } from '@drydock/contracts/workflows';
import type { Sql } from '@drydock/database/sql';
import { audit } from '@drydock/service-kit/audit';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { type AboutWorkflow, readHomeWorkflow, type WorkflowHome } from './workflow-home';

export type DecideRequest<Name extends string> = AboutWorkflow<Name> & { afterCommit(work: () => unknown): void };

interface Decision {
  action: string;
  apply(sql: Sql, workflowId: string): Promise<void>;
}

/** Staff's decision over a workflow that waits for it, with its audit entry. Throws `workflow_not_waiting`. */
export const decideWorkflow = <Name extends string>(context: HandlerContext, home: WorkflowHome<Name>, { action, apply }: Decision) => ({
  act: async (tx: Tx, request: DecideRequest<Name>): Promise<{ status: 202; headers: Record<string, string>; body: WorkflowView }> => {
    const { caller, params } = request;
    const { workflowId } = params;
    const sql = context.database.sql(tx);
    await readHomeWorkflow(context, home, request, sql);
    await apply(sql, workflowId);
    const target = home.pathOf(params[home.param]);
    const { orgId, mode, keyId: actorKeyId } = caller;
    await audit(sql, { orgId, mode, actorKeyId, action, target, workflowId });
    request.afterCommit(() => context.ring(workflowId));
    const { view } = await readHomeWorkflow(context, home, request, sql);
    return { status: 202, headers: { location: `${target}/workflows/${workflowId}`, 'retry-after': '1' }, body: view };
  },
});
