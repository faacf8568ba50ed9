import { uuidv7 } from 'uuidv7';
import type { Caller } from '../access/internal-token';
import type { ServiceApi } from './service-api';

export interface GivenWorkflow {
  kind: string;
  /** What it is found under, such as `{ type: 'site', id }`. */
  subject: { type: string; id: string };
  input: object;
  status: 'succeeded' | 'needs_attention';
}

/** A workflow as a worker would have left it, with no step. Its resource is its own, so that it is in the way of nothing. Resolves with its id. */
export async function givenWorkflow(api: Pick<ServiceApi, 'rows'>, { orgId, mode }: Caller, given: GivenWorkflow): Promise<string> {
  const id = uuidv7();
  const error = given.status === 'needs_attention' ? { code: 'step_failed' } : null;
  await api.rows(
    `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, status, error, started_at, finished_at)
     VALUES ($1::uuid, $2, 'test:' || $1::text, $3, $4, $5, $6, $7, 'test', $8, $9, now(), CASE WHEN $8 = 'succeeded' THEN now() END)`,
    [id, given.kind, given.subject.type, given.subject.id, orgId, mode, given.input, given.status, error],
  );
  return id;
}

/** The state from which an operation about a workflow succeeds: staff decide over one that waits for them, all else reads one that has ended. */
export const statusFor = ({ method }: { method: string }): GivenWorkflow['status'] => (method === 'POST' ? 'needs_attention' : 'succeeded');
