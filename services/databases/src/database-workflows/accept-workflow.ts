import { audit } from '@drydock/service-kit/audit';
import type { Caller } from '@drydock/service-kit/internal-token';
import { startWorkflow, type WorkflowStart } from '@drydock/workflow/start-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { refusalByWorkflow } from '../databases/database.rules';
import { databasePath, databaseResourceKey, databaseSubject } from '../databases/database-names';
import { assertAllowed } from './refuse';

interface Asking {
  caller: Caller;
  requestId: string;
  traceparent: string | undefined;
  afterCommit(work: () => unknown): void;
}

export interface Acceptance {
  definition: NonNullable<WorkflowStart['definition']>;
  input: unknown;
  /** `database.upgrade`: resource and verb. */
  action: string;
}

/**
 * Accepts work on a database within `tx`: workflow and audit entry, and the doorbell once they are committed. Resolves with the workflow's id.
 * Throws `operation_in_progress` or `needs_attention` when another one holds the database, whatever was read before.
 */
export async function acceptWorkflow(
  context: Pick<HandlerContext, 'database' | 'ring'>,
  tx: Tx,
  { caller, requestId, traceparent, afterCommit }: Asking,
  databaseId: string,
  { definition, input, action }: Acceptance,
): Promise<string> {
  const sql = context.database.sql(tx);
  const { orgId, mode, keyId: actorKeyId } = caller;
  const started = await startWorkflow(sql, {
    kind: definition.kind,
    definition,
    resourceKey: databaseResourceKey(databaseId),
    subject: databaseSubject(databaseId),
    orgId,
    mode,
    input,
    actorKeyId,
    requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
  });
  const { workflowId } = started;
  if (!started.started) assertAllowed(refusalByWorkflow({ id: workflowId, kind: '', status: started.status }));
  await audit(sql, { orgId, mode, actorKeyId, action, target: databasePath(databaseId), workflowId });
  afterCommit(() => context.ring(workflowId));
  return workflowId;
}

/** Where the caller follows what was accepted, and how soon to look again. */
export const followHeaders = (databaseId: string, workflowId: string): Record<string, string> => ({
  location: `${databasePath(databaseId)}/workflows/${workflowId}`,
  'retry-after': '1',
});
