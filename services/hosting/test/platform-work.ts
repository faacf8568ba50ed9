import { readdirSync } from 'node:fs';
import type { Sql } from '@drydock/service/database';
import type { ServiceApi } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import { startWorkflow, type WorkflowStart } from '@drydock/workflow/store';
import { lookAtRecord } from '@drydock/workflow/testing/workflow-record';
import { uuidv7 } from 'uuidv7';
import { platformOrgId, platformSubject } from '../src/sites/site.types';
import { scheduleRegulars } from '../src/workflows';

type Definition = NonNullable<WorkflowStart['definition']>;

const sqlOf = (api: ServiceApi): Sql => ({ query: async (text, values) => (await api.rows(text, values)) as never });

/** Postpones the work of `scheduleRegulars` by a day, for tests that start this work themselves. */
export async function stopClock(api: ServiceApi): Promise<void> {
  await scheduleRegulars(sqlOf(api));
  await api.rows("UPDATE workflow_schedule SET next_run_at = now() + interval '1 day'");
}

/** Starts the work of a schedule now. Resolves with the workflow's id. */
export async function startPlatformWork(api: ServiceApi, definition: Definition, input: object = {}): Promise<string> {
  const { workflowId } = await startWorkflow(sqlOf(api), {
    kind: definition.kind,
    definition,
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

/** Starts the work of a schedule, and waits for its end. Rejects if the work fails. */
export async function succeedPlatformWork(
  api: ServiceApi,
  definition: Definition,
  input: object = {},
): Promise<string> {
  const workflowId = await startPlatformWork(api, definition, input);
  const isOver = async (): Promise<boolean> =>
    !['queued', 'running'].includes((await lookAtRecord(api, workflowId)).status);
  await until(isOver, { timeoutMs: 60_000, what: `the end of ${definition.kind}` });
  const look = await lookAtRecord(api, workflowId);
  if (look.status !== 'succeeded') throw new Error(`${definition.kind} ended as ${JSON.stringify(look)}`);
  return workflowId;
}

export const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};
