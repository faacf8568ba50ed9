import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { Database, Sql } from '@drydock/service/database';
import type { Pager } from '@drydock/service/http';
import type { Foundation, QueueConfig, ServiceConfig } from '@drydock/service/process';
import type { StartableWorkflow } from '../definition/definition';
import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '../definition/refusal.rules';
import { createDispatcher, type Dispatcher } from '../dispatch/dispatcher';
import { createAnnouncer, createListener, type WorkflowListener } from '../store/listener';
import { findUnfinished, startWorkflow, type WorkflowStart } from '../store/start-workflow';

/** The parts that handlers of every service with workflows are given. */
export interface WorkflowContext<Tx> {
  database: Database<Tx>;
  pager: Pager;
  /** Postgres' notifications about workflows, for requests that wait for a workflow. */
  listener: WorkflowListener;
  /** Enqueues a job for a new workflow. It must be called after the commit. */
  enqueue: Dispatcher['enqueue'];
}

interface ApiConnection<Tx> {
  connected: Pick<WorkflowContext<Tx>, 'listener' | 'enqueue'>;
  /**
   * Wakes the worker, which delivers audit entries and events. It must be called after each commit, because a change
   * without a workflow writes an audit entry too.
   */
  changed(): void;
}

/**
 * Connects an API to its workflows: it receives notifications of their changes, and it can enqueue jobs. The worker
 * must use the same `queueName`.
 */
export function connectWorkflows<Tx>(
  { log, lifetime, database }: Foundation<Database<Tx>>,
  config: Pick<ServiceConfig, 'DATABASE_URL'> & Pick<QueueConfig, 'QUEUE_URL'>,
  queueName: string,
): ApiConnection<Tx> {
  const listener = createListener({ connectionString: config.DATABASE_URL, log });
  lifetime.onClose('listener', () => listener.close());
  const dispatcher = createDispatcher({ database, queueUrl: config.QUEUE_URL, queueName, log });
  lifetime.onClose('dispatcher', () => dispatcher.close());
  const announce = createAnnouncer(database.sql(), log);
  return { connected: { listener, enqueue: dispatcher.enqueue }, changed: () => announce('') };
}

/** The parts of a request that are needed to accept its work. */
export interface Asking {
  caller: Caller;
  requestId: string;
  traceparent: string | undefined;
  afterCommit(work: () => unknown): void;
}

export interface WorkTarget extends Pick<WorkflowStart, 'resourceKey' | 'subject'> {
  /** The path under which the audit log names the resource, such as `/v1/sites/…`. */
  path: string;
}

export interface Acceptance<Input> extends WorkTarget {
  definition: StartableWorkflow<Input>;
  input: Input;
  /**
   * The action in the audit log, a resource and a verb such as `backup.restore`. With null, a step of the workflow
   * writes the audit entry itself, once the work is known to have an effect.
   */
  action: string | null;
  /** The workflow's id; by default a new one. Work that makes a resource may use the resource's id. */
  id?: string;
  /** The time at which the workflow is cancelled if no worker has claimed it; see {@link readStartBy}. */
  startBy?: Date;
}

/**
 * Accepts work within `tx`: writes the workflow and the audit entry, and enqueues a job after the commit. Resolves with
 * the workflow's id. Throws `operation_in_progress` or `needs_attention` if another workflow has locked the resource,
 * even if an earlier check found the resource free.
 */
export async function acceptWorkflow<Tx, Input>(
  context: Pick<WorkflowContext<Tx>, 'database' | 'enqueue'>,
  tx: Tx,
  { caller, requestId, traceparent, afterCommit }: Asking,
  { definition, path, action, ...start }: Acceptance<Input>,
): Promise<string> {
  const sql = context.database.sql(tx);
  const { orgId, mode, keyId: actorKeyId } = caller;
  const started = await startWorkflow(sql, {
    ...start,
    kind: definition.kind,
    definition,
    orgId,
    mode,
    actorKeyId,
    requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(action === null ? {} : { audit: { action, target: path } }),
  });
  const { workflowId } = started;
  if (!started.started) assertAllowed(refusalByWorkflow({ id: workflowId, status: started.status }));
  afterCommit(() =>
    context.enqueue(
      { workflowId, orgId, kind: definition.kind },
      start.startBy === undefined ? 'default' : 'interactive',
    ),
  );
  return workflowId;
}

/**
 * Headers that tell the caller where to follow the work, and after how many seconds to ask again. `path` is the path of
 * the resource.
 */
export const followHeaders = (path: string, workflowId: string): Record<string, string> => ({
  location: `${path}/workflows/${workflowId}`,
  'retry-after': '1',
  'x-workflow-id': workflowId,
});

/**
 * How long the work of a request may wait for a worker, in seconds (docs/spec/decisions.md). After that the work is
 * cancelled without any effect.
 */
export const startWithinSeconds = 10;

/**
 * How long a request waits until its work has begun or is cancelled. The wait is a little longer than
 * `startWithinSeconds`.
 */
export const startDecidedMs = startWithinSeconds * 1_000 + 500;

/**
 * The time by which the work must have begun. It comes from Postgres' clock, because it is later compared with that
 * clock.
 */
export async function readStartBy(sql: Sql): Promise<Date> {
  const [row] = await sql.query<{ start_by: Date }>(
    'SELECT clock_timestamp() + make_interval(secs => $1::float8) AS start_by',
    [startWithinSeconds],
  );
  if (row === undefined) throw new Error('Postgres did not tell the time');
  return row.start_by;
}

export const problemOf = ({ code, extra, retryAfterSeconds }: Refusal): Problem =>
  problem(code, {
    ...(extra === undefined ? {} : { extra }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });

export function assertAllowed(refusal: Refusal | null): void {
  if (refusal !== null) throw problemOf(refusal);
}

/**
 * Throws the refusal that `refuse` returns, if there is one. `refuse` is first called as if no work were in progress.
 * If this call returns null, the real state is not read, because {@link acceptWorkflow} itself refuses work in
 * progress. If it returns a refusal, the real state is read and `refuse` is called again, because work in progress is
 * reported before any other refusal.
 */
export async function assertAllowedOn(
  sql: Sql,
  resourceKey: string,
  refuse: (unfinished: UnfinishedWorkflow | null) => Refusal | null,
): Promise<void> {
  if (refuse(null) !== null) assertAllowed(refuse(await findUnfinished(sql, resourceKey)));
}

/**
 * Throws `operation_in_progress` or `needs_attention`, with the workflow's id, if a workflow has locked the resource.
 */
export async function assertFree(sql: Sql, resourceKey: string): Promise<void> {
  assertAllowed(refusalByWorkflow(await findUnfinished(sql, resourceKey)));
}
