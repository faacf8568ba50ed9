import type { Caller } from '@drydock/service-kit/internal-token';
import { startWorkflow, type WorkflowStart } from '@drydock/workflow/start-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { refusalByWorkflow } from '../servers/server.rules';
import type { Server } from '../servers/server.types';
import { serverPath, serverResourceKey, serverSubject } from '../servers/server-names';
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
  /** Of the workflow that makes the server: the server's. */
  id?: string;
  /** Unclaimed by then it is cancelled; see {@link readStartBy}. */
  startBy?: Date;
}

/**
 * Accepts work on a server within `tx`, and rings the doorbell once it is committed. Resolves with the workflow's id. The step in which the provider
 * accepts notes it in the audit log, so that a refusal leaves no entry.
 * Throws `operation_in_progress` or `needs_attention` when another one holds the server, whatever was read before.
 */
export async function acceptWorkflow(
  context: Pick<HandlerContext, 'database' | 'ring'>,
  tx: Tx,
  request: Asking,
  server: Pick<Server, 'id'>,
  { definition, input, id, startBy }: Acceptance,
): Promise<string> {
  const { caller, requestId, traceparent } = request;
  const started = await startWorkflow(context.database.sql(tx), {
    kind: definition.kind,
    definition,
    resourceKey: serverResourceKey(server.id),
    subject: serverSubject(server.id),
    orgId: caller.orgId,
    mode: caller.mode,
    input,
    actorKeyId: caller.keyId,
    requestId,
    ...(id === undefined ? {} : { id }),
    ...(startBy === undefined ? {} : { startBy }),
    ...(traceparent === undefined ? {} : { traceparent }),
  });
  const { workflowId } = started;
  if (!started.started) assertAllowed(refusalByWorkflow({ id: workflowId, kind: '', status: started.status }));
  request.afterCommit(() => context.ring(workflowId, startBy === undefined ? 'usual' : 'prompt'));
  return workflowId;
}

/** Where the caller follows what was accepted, and how soon to look again. */
export const followHeaders = (serverId: string, workflowId: string): Record<string, string> => ({
  location: `${serverPath(serverId)}/workflows/${workflowId}`,
  'retry-after': '1',
});
