import { testPostgres } from '@drydock/postgres/testing/postgres';
import { openPool, pgDatabase, type Sql } from '@drydock/service/database';
import type { Pool } from 'pg';
import { uuidv7 } from 'uuidv7';
import { workflowTables } from '../testing/world';
import type { ClaimKey, Direction, StepStatus, WorkflowStatus } from './claim.types';
import { raiseFences } from './fences';
import * as states from './workflow-states';
import { stepTransitions, workflowTransitions } from './workflow-transitions';

type Statement = keyof typeof workflowTransitions;

/** A workflow in one state. Its steps `a` and `b` have the states in `steps`. An empty list means no steps yet. */
interface Case {
  id: string;
  status: WorkflowStatus;
  direction: Direction;
  /**
   * Whether a queued workflow was claimed before. For a running workflow: true if its lease has expired, and false if
   * its lease was released.
   */
  isClaimed: boolean;
  steps: readonly StepStatus[];
}

const statuses: readonly WorkflowStatus[] = ['queued', 'running', 'succeeded', 'failed', 'needs_attention'];
const directions: readonly Direction[] = ['forward', 'undo', 'abandon'];
const stepStatuses: readonly StepStatus[] = ['pending', 'running', 'succeeded', 'failed', 'undone'];
const stepLists: readonly (readonly StepStatus[])[] = [
  [],
  ...stepStatuses.map((first): StepStatus[] => [first, 'pending']),
  ...stepStatuses.map((second): StepStatus[] => ['running', second]),
  ...stepStatuses.map((second): StepStatus[] => ['succeeded', second]),
];
const orgId = uuidv7();
const fence = 7;

const everyCase = (): Case[] =>
  statuses.flatMap((status) =>
    directions.flatMap((direction) =>
      [true, false].flatMap((isClaimed) =>
        stepLists.map((steps) => ({ id: uuidv7(), status, direction, isClaimed, steps })),
      ),
    ),
  );

const insertCases = (sql: Sql, cases: readonly Case[]): Promise<unknown> =>
  sql.query(
    `WITH given AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS c(id uuid, status text, direction text, "isClaimed" boolean, steps jsonb)),
     made AS (
       INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, status, direction, fence, lease_until,
         due_at, start_by, error, finished_at)
       SELECT id, 'kind', id::text, 'site', id::text, $2::uuid, 'live', '{}', 'request', status, direction,
         CASE WHEN status = 'queued' AND NOT "isClaimed" THEN 0 ELSE ${fence} END,
         CASE WHEN status = 'running' AND "isClaimed" THEN now() - interval '1 minute' END, now() - interval '1 minute',
         CASE WHEN status = 'queued' AND NOT "isClaimed" AND steps = '["pending", "pending"]' THEN now() - interval '1 second' END,
         CASE WHEN status IN ('failed', 'needs_attention') THEN '{"code": "step_failed"}'::jsonb END,
         CASE WHEN status IN ('succeeded', 'failed') THEN now() END
       FROM given
     )
     INSERT INTO workflow_step (workflow_id, name, position, status)
     SELECT id, chr((96 + ordinality)::int), ordinality - 1, status_of_step
     FROM given, jsonb_array_elements_text(steps) WITH ORDINALITY AS step(status_of_step, ordinality)`,
    [JSON.stringify(cases), orgId],
  );

const claimLimits = { leaseSeconds: 60, crashesMax: 5, stepNamesByKind: JSON.stringify({ kind: ['a', 'b'] }) };
const failure = { code: 'step_failed' as const };
const newWorkflow = {
  kind: 'kind',
  subject: { type: 'site', id: 'site' },
  orgId,
  mode: 'live' as const,
  input: {},
  actorKeyId: null,
  requestId: 'request',
};

/**
 * Calls each statement that a worker makes on a workflow that it has claimed. A statement about one step is called for
 * step `a`.
 */
const workersStatements = {
  renewLease: (sql, claim) => states.renewLease(sql, claim, 60),
  reportProgress: (sql, claim) => states.reportProgress(sql, claim, 50),
  relistSteps: (sql, claim) => states.relistSteps(sql, claim, ['b', 'c'], {}),
  beginStep: (sql, claim) => states.beginStep(sql, claim, 'a'),
  completeStep: (sql, claim) => states.completeStep(sql, claim, { step: 'a', output: null, next: 'b', progress: 50 }),
  beginUndo: (sql, claim) => states.beginUndo(sql, claim, 'a', failure),
  completeUndo: (sql, claim) => states.completeUndo(sql, claim, 'a'),
  releaseClaim: (sql, claim) =>
    states.releaseClaim(sql, claim, { afterSeconds: 1, failed: { what: 'step', step: 'a' } }),
  succeedWorkflow: (sql, claim) => states.succeedWorkflow(sql, claim),
  failWorkflow: (sql, claim) => states.failWorkflow(sql, claim, failure),
  parkWorkflow: (sql, claim) => states.parkWorkflow(sql, claim, { step: 'a', problem: failure }),
} satisfies Partial<Record<Statement, (sql: Sql, claim: ClaimKey) => Promise<unknown>>>;
const statements: Record<Statement, (sql: Sql, claim: ClaimKey) => Promise<unknown>> = {
  ...workersStatements,
  insertWorkflow: (sql, { id }) =>
    states.insertWorkflow(sql, { ...newWorkflow, id: uuidv7(), resourceKey: id }, ['a', 'b']),
  claimWorkflow: (sql, { id }) => states.claimWorkflow(sql, { workflowId: id, orgId }, claimLimits),
  retryWorkflow: (sql, { id }) => states.retryWorkflow(sql, id),
  abandonWorkflow: (sql, { id }) => states.abandonWorkflow(sql, id),
  cancelWorkflow: (sql, { id }) => states.cancelWorkflow(sql, id, failure),
};

interface Row {
  /** The id of the workflow, followed by the step's name in the row of a step. */
  key: string;
  state: string;
  all: string;
}

const readWorkflows = (sql: Sql): Promise<Row[]> =>
  sql.query(
    `SELECT id::text AS key, status || ' ' || direction AS state, to_jsonb(workflow)::text AS all FROM workflow`,
  );
const readSteps = (sql: Sql): Promise<Row[]> =>
  sql.query(
    `SELECT workflow_id || ' ' || name AS key, status AS state, to_jsonb(workflow_step)::text AS all FROM workflow_step`,
  );

/** The changes of state of all rows that differ in any column. */
function changesOf(before: readonly Row[], after: readonly Row[], gone: string): Set<string> {
  const earlier = new Map(before.map((row) => [row.key, row]));
  const later = new Set(after.map((row) => row.key));
  const changed = after.filter((row) => earlier.get(row.key)?.all !== row.all);
  const removed = before.filter((row) => !later.has(row.key));
  return new Set([
    ...changed.map((row) => `${earlier.get(row.key)?.state ?? 'none'} -> ${row.state}`),
    ...removed.map((row) => `${row.state} -> ${gone}`),
  ]);
}

/** The table's entries for a statement, with `*` replaced by each direction. */
const allowed = (statement: Statement): Set<string> =>
  new Set(
    workflowTransitions[statement].flatMap((change) =>
      change.startsWith('none') || !change.includes('*')
        ? [change]
        : directions.map((direction) => change.replaceAll('*', direction)),
    ),
  );

/** The events that were written, and the states of their workflows. */
const eventsSql = `
  SELECT type, array_agg(DISTINCT status || ' ' || direction ORDER BY status || ' ' || direction) AS states
  FROM workflow_event JOIN workflow ON workflow.id = workflow_id AND resource = '/v1/sites/' || subject_id AND workflow_event.org_id = workflow.org_id
  GROUP BY type ORDER BY type`;
const told = {
  succeeded: 'workflow.succeeded',
  failed: 'workflow.failed',
  needs_attention: 'workflow.needs_attention',
};

/** The events that these changes must cause: a workflow is new, has ended, waits for staff or was retried by staff. */
function eventsOf(statement: Statement, changes: ReadonlySet<string>): { type: string; states: string[] }[] {
  const states = new Map<string, Set<string>>();
  for (const change of changes) {
    const [from = '', to = ''] = change.split(' -> ');
    const reached = Object.entries(told).find(
      ([status]) => to.startsWith(`${status} `) && !from.startsWith(`${status} `),
    )?.[1];
    const begun = from === 'none' ? 'workflow.accepted' : undefined;
    const type = statement === 'retryWorkflow' ? 'workflow.retried' : (begun ?? reached);
    if (type !== undefined) states.set(type, (states.get(type) ?? new Set()).add(to));
  }
  return [...states].map(([type, all]) => ({ type, states: [...all].sort() }));
}

const stepTable: Partial<Record<Statement, readonly string[]>> = stepTransitions;
const isChange = (change: string): boolean => {
  const [from, to] = change.split(' -> ');
  return from !== to;
};

describe('the statements of the state machine', () => {
  let pool: Pool;
  let close: () => Promise<void>;

  beforeAll(async () => {
    const postgres = await testPostgres({ sql: workflowTables });
    pool = openPool(postgres.url);
    close = postgres.close;
  });
  afterAll(async () => {
    await pool.end();
    await close();
  });

  /** The changes of a statement in workflows of every state; the transaction is rolled back. */
  async function changesBy(statement: (sql: Sql, claim: ClaimKey) => Promise<unknown>, withFence = fence) {
    const database = pgDatabase(pool);
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const sql = database.sql(client);
      const cases = everyCase();
      await insertCases(sql, cases);
      const before = { workflows: await readWorkflows(sql), steps: await readSteps(sql) };
      for (const { id } of cases) {
        // A refusal is an ordinary result here. Only the changes of rows are compared.
        await statement(sql, { id, kind: 'kind', fence: String(withFence) }).catch((error: unknown) =>
          assertRefusal(error),
        );
      }
      return {
        workflows: changesOf(before.workflows, await readWorkflows(sql), 'gone'),
        steps: changesOf(before.steps, await readSteps(sql), 'gone'),
        events: await sql.query<{ type: string; states: string[] }>(eventsSql),
      };
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  }

  it.each(Object.keys(statements) as Statement[])(
    '%s changes workflows and steps in every way of its table, and in no other',
    async (name) => {
      const { workflows, steps, events } = await changesBy(statements[name]);
      expect([...workflows].sort()).toEqual([...allowed(name)].sort());
      const table = stepTable[name] ?? [];
      expect([...steps].filter((change) => isChange(change) && !table.includes(change))).toEqual([]);
      expect(table.filter((change) => !steps.has(change))).toEqual([]);
      expect(events).toEqual(eventsOf(name, workflows));
    },
  );

  it.each(Object.keys(workersStatements) as (keyof typeof workersStatements)[])(
    '%s changes nothing under an older fence',
    async (name) => {
      const { workflows, steps } = await changesBy(workersStatements[name], fence - 1);
      expect([...workflows, ...steps]).toEqual([]);
    },
  );
});

function assertRefusal(error: unknown): void {
  if (
    error instanceof Error &&
    (error.name === 'LeaseLost' || ('code' in error && error.code === 'workflow_not_waiting'))
  )
    return;
  throw error;
}

test('workers that raise the fences at the same moment never give out a number twice, nor a lower one later', async () => {
  const postgres = await testPostgres({ sql: workflowTables });
  const pool = openPool(postgres.url, { max: 12 });
  pool.on('error', () => undefined);
  const { transaction, sql } = pgDatabase(pool);
  const nextFence = async (): Promise<bigint> =>
    BigInt((await sql().query<{ next: string }>(`SELECT nextval('workflow_fence')::text AS next`))[0]?.next ?? '');
  await Promise.all(Array.from({ length: 12 }, nextFence)); // opens every connection of the pool
  for (let round = 0; round < 60; round += 1) {
    await sql().query(`SELECT setval('workflow_fence', 1)`);
    const given = await Promise.all(
      Array.from({ length: 12 }, async () => {
        await raiseFences({ transaction, sql });
        return [await nextFence(), await nextFence()];
      }),
    );
    const all = given.flat();
    expect(new Set(all).size).toBe(all.length);
    for (const [first, second] of given) expect((second ?? 0n) > (first ?? 0n)).toBe(true);
  }
  await pool.end();
  await postgres.close();
});
