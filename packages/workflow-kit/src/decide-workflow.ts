import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import type { Sql } from '@drydock/service/database/sql';
import { audit } from '@drydock/service/effects/audit';
import * as attention from '@drydock/workflow/attention';
import { watchWorkflow } from '@drydock/workflow/watch-workflow';
import { followHeaders } from './accept-workflow';
import { type AboutWorkflow, readHomeWorkflow, type WorkflowHome } from './workflow-home';

type DecideRequest<Name extends string> = AboutWorkflow<Name> & { afterCommit(work: () => unknown): void };

interface Decision {
  action: string;
  apply(sql: Sql, workflow: WorkflowView): Promise<void>;
  /** How long a worker is waited for that does what was decided. */
  waitMs: number;
}

/** A worker ends an abandoned workflow within milliseconds. Without one the answer is given all the same, and says that it is queued. */
const abandonWaitMs = 5_000;

/** Staff's decision over a workflow that waits for it, with its audit entry. Throws `workflow_not_waiting`. */
const decideWorkflow = <Tx, Name extends string>(home: WorkflowHome<Tx, Name>, { action, apply, waitMs }: Decision) => ({
  act: async (tx: Tx, request: DecideRequest<Name>): Promise<object> => {
    const { caller, params, afterCommit } = request;
    const { workflowId } = params;
    const { database, ring } = home.context;
    const sql = database.sql(tx);
    const { view: waiting } = await readHomeWorkflow(home, request, sql);
    await apply(sql, waiting);
    const path = home.pathOf(params[home.param]);
    const { orgId, mode, keyId: actorKeyId } = caller;
    await audit(sql, { orgId, mode, actorKeyId, action, target: path, workflowId });
    afterCommit(() => ring({ workflowId, orgId }, 'prompt'));
    return {};
  },
  settle: async (request: DecideRequest<Name>): Promise<{ status: 202; headers: Record<string, string>; body: WorkflowView }> => {
    const { params } = request;
    const { database, listener } = home.context;
    if (waitMs > 0) {
      const changes = watchWorkflow(database.sql(), params.workflowId, { listener, signal: AbortSignal.timeout(waitMs) });
      for await (const { view } of changes) if (view.status === 'failed') break;
    }
    const { view } = await readHomeWorkflow(home, request);
    return { status: 202, headers: followHeaders(home.pathOf(params[home.param]), params.workflowId), body: view };
  },
});

/** Goes on where it stopped. */
export const retryWorkflow = <Tx, Name extends string>(home: WorkflowHome<Tx, Name>) =>
  decideWorkflow(home, { action: 'workflow.retry', apply: (sql, { id }) => attention.retryWorkflow(sql, id), waitMs: 0 });

/** Ends as failed; what it holds is unlocked as it is, and says so once this is answered. `leaves`: by kind, what staff are told to become of it, where its code knows more than they do. */
export const abandonWorkflow = <Tx, Name extends string>(home: WorkflowHome<Tx, Name>, leaves: Readonly<Record<string, string>> = {}) =>
  decideWorkflow(home, {
    action: 'workflow.abandon',
    apply: (sql, { id, kind }) => attention.abandonWorkflow(sql, id, leaves[kind]),
    waitMs: abandonWaitMs,
  });
