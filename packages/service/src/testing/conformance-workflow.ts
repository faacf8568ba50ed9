import { uuidv7 } from 'uuidv7';
import type { Caller } from '../access/internal-token';
import type { ServiceApi } from './service-api';

export interface GivenWorkflow {
  kind: string;
  /** The subject of the workflow, such as `{ type: 'site', id }`. */
  subject: { type: string; id: string };
  input: object;
  status: 'succeeded' | 'needs_attention';
}

/**
 * Inserts a workflow without steps, in a state in which a worker could have left it. It locks a resource of its own, so
 * it blocks no other work. Resolves with its id.
 */
export async function givenWorkflow(
  api: Pick<ServiceApi, 'rows'>,
  { orgId, mode }: Caller,
  given: GivenWorkflow,
): Promise<string> {
  const id = uuidv7();
  const error = given.status === 'needs_attention' ? { code: 'step_failed' } : null;
  await api.rows(
    `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, status, error, started_at, finished_at)
     VALUES ($1::uuid, $2, 'test:' || $1::text, $3, $4, $5, $6, $7, 'test', $8, $9, now(), CASE WHEN $8 = 'succeeded' THEN now() END)`,
    [id, given.kind, given.subject.type, given.subject.id, orgId, mode, given.input, given.status, error],
  );
  return id;
}

/**
 * The status in which an operation on a workflow succeeds: staff decide on a workflow that waits for them, and every
 * other operation reads a workflow that has ended.
 */
export const statusFor = ({ method }: { method: string }): GivenWorkflow['status'] =>
  method === 'POST' ? 'needs_attention' : 'succeeded';

/**
 * Replaces the workers for which requests wait. The database itself ends workflows that staff abandon, and lets
 * workflows of the kinds in `outputs` succeed, with the given output for each step. Otherwise each such request would
 * wait for a worker until its limit.
 */
export async function standInForWorkers(
  api: Pick<ServiceApi, 'rows'>,
  outputs: Readonly<Record<string, object>> = {},
): Promise<void> {
  await api.rows(standInSql);
  await api.rows('INSERT INTO stand_in SELECT key, value FROM jsonb_each($1::jsonb)', [JSON.stringify(outputs)]);
}

const standInSql = `
  CREATE TABLE stand_in (kind text PRIMARY KEY, output jsonb NOT NULL);
  CREATE FUNCTION end_abandoned() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.status = 'failed';
    NEW.finished_at = clock_timestamp();
    RETURN NEW;
  END $$;
  CREATE TRIGGER end_abandoned BEFORE UPDATE ON workflow FOR EACH ROW WHEN (NEW.direction = 'abandon' AND NEW.status = 'queued') EXECUTE FUNCTION end_abandoned();
  CREATE FUNCTION succeed_at_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE workflow_step SET status = 'succeeded', output = stand_in.output FROM workflow JOIN stand_in USING (kind)
      WHERE workflow.id = NEW.workflow_id AND workflow_id = NEW.workflow_id AND name = NEW.name;
    UPDATE workflow SET status = 'succeeded', finished_at = clock_timestamp(), version = version + 1
      WHERE id = NEW.workflow_id AND status = 'queued' AND kind IN (SELECT kind FROM stand_in);
    RETURN NULL;
  END $$;
  CREATE TRIGGER succeed_at_once AFTER INSERT ON workflow_step FOR EACH ROW EXECUTE FUNCTION succeed_at_once()`;
