import { audit } from '@drydock/service-kit/audit';
import type { Caller } from '@drydock/service-kit/internal-token';
import { startWorkflow, type WorkflowStart } from '@drydock/workflow/start-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { refusalByWorkflow } from '../sites/site.rules';
import type { Site } from '../sites/site.types';
import { sitePath, siteResourceKey, siteSubject } from '../sites/site-names';
import { assertAllowed } from './refuse';

export interface Asking {
  caller: Caller;
  requestId: string;
  traceparent: string | undefined;
  afterCommit(work: () => unknown): void;
}

export interface Acceptance {
  definition: NonNullable<WorkflowStart['definition']>;
  input: unknown;
  /** `backup.restore`: resource and verb. Null: a step notes it, in the transaction that records the platform's acceptance. */
  action: string | null;
  /** Unclaimed by then it is cancelled; see {@link readStartBy}. */
  startBy?: Date;
}

/**
 * Accepts work on a site within `tx`: workflow and audit entry, and the doorbell once they are committed. Resolves with the workflow's id.
 * Throws `operation_in_progress` or `needs_attention` when another one holds the site, whatever was read before.
 */
export async function acceptWorkflow(
  context: Pick<HandlerContext, 'database' | 'ring'>,
  tx: Tx,
  request: Asking,
  site: Pick<Site, 'id'>,
  { definition, input, action, startBy }: Acceptance,
): Promise<string> {
  const { caller, requestId, traceparent } = request;
  const sql = context.database.sql(tx);
  const { orgId, mode, keyId: actorKeyId } = caller;
  const started = await startWorkflow(sql, {
    kind: definition.kind,
    definition,
    resourceKey: siteResourceKey(site.id),
    subject: siteSubject(site.id),
    orgId,
    mode,
    input,
    actorKeyId,
    requestId,
    ...(startBy === undefined ? {} : { startBy }),
    ...(traceparent === undefined ? {} : { traceparent }),
  });
  const { workflowId } = started;
  if (!started.started) assertAllowed(refusalByWorkflow({ id: workflowId, kind: '', status: started.status }));
  if (action !== null) await audit(sql, { orgId, mode, actorKeyId, action, target: sitePath(site.id), workflowId });
  request.afterCommit(() => context.ring(workflowId, startBy === undefined ? 'usual' : 'prompt'));
  return workflowId;
}

/** Where the caller follows what was accepted, and how soon to look again. */
export const followHeaders = (siteId: string, workflowId: string): Record<string, string> => ({
  location: `${sitePath(siteId)}/workflows/${workflowId}`,
  'retry-after': '1',
});
