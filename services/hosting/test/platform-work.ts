import { readdirSync } from 'node:fs';
import type { Sql } from '@drydock/database/sql';
import type { CrashLook } from '@drydock/test-kit/crash-every-step';
import { until } from '@drydock/test-kit/wait';
import { startWorkflow, type WorkflowStart } from '@drydock/workflow/start-workflow';
import { uuidv7 } from 'uuidv7';
import { platformOrgId, platformSubject } from '../src/retention/platform-work';
import { scheduleRegulars } from '../src/retention/schedule-regulars';
import type { HostingApi } from './hosting-api';

type Head = NonNullable<WorkflowStart['definition']>;

const sqlOf = (api: HostingApi): Sql => ({ query: async (text, values) => (await api.rows(text, values)) as never });

/** The clock starts nothing of its own in this world: a test that counts, or orders faults, starts everything itself. */
export async function stopClock(api: HostingApi): Promise<void> {
  await scheduleRegulars(sqlOf(api));
  await api.rows("UPDATE workflow_schedule SET next_run_at = now() + interval '1 day'");
}

/** What the clock would start, now. Resolves with the workflow's id. */
export async function startPlatformWork(api: HostingApi, head: Head, input: object = {}): Promise<string> {
  const { workflowId } = await startWorkflow(sqlOf(api), {
    kind: head.kind,
    definition: head,
    resourceKey: `test:${uuidv7()}`,
    subject: platformSubject,
    orgId: platformOrgId,
    mode: 'live',
    input,
    actorKeyId: null,
    requestId: 'test',
  });
  return workflowId;
}

/** What the record says of work that no endpoint shows. */
export async function lookAt(api: HostingApi, workflowId: string): Promise<CrashLook> {
  const [row] = await api.rows<{ status: string; resource_key: string }>('SELECT status, resource_key FROM workflow WHERE id = $1', [
    workflowId,
  ]);
  const steps = await api.rows<{ name: string; status: string; attempts: number }>(
    'SELECT name, status, attempts FROM workflow_step WHERE workflow_id = $1 ORDER BY position',
    [workflowId],
  );
  const unfinished = await api.rows(
    "SELECT 1 FROM workflow WHERE resource_key = $1 AND status IN ('queued', 'running', 'needs_attention')",
    [row?.resource_key],
  );
  return { status: row?.status ?? 'gone', steps, unfinished: unfinished.length };
}

/** Waits for its end and insists on success. */
export async function succeedPlatformWork(api: HostingApi, head: Head, input: object = {}): Promise<string> {
  const workflowId = await startPlatformWork(api, head, input);
  const isOver = async (): Promise<boolean> => !['queued', 'running'].includes((await lookAt(api, workflowId)).status);
  await until(isOver, { timeoutMs: 60_000, what: `the end of ${head.kind}` });
  const look = await lookAt(api, workflowId);
  if (look.status !== 'succeeded') throw new Error(`${head.kind} ended as ${JSON.stringify(look)}`);
  return workflowId;
}

export const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};
