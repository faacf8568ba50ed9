import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import { subjectPaths, type WorkflowFilter, type WorkflowView } from '@drydock/contracts/platform/workflows';
import { timeLimit } from '@drydock/process';
import type { Caller } from '@drydock/service/access';
import type { Sql } from '@drydock/service/database';
import { audit } from '@drydock/service/effects';
import { listFilter, type StreamEvent } from '@drydock/service/http';
import {
  listWorkflows as listRows,
  readWorkflow,
  type VersionedWorkflow,
  type WorkflowScope,
} from '../store/read-workflow';
import { watchWorkflow as watchVersions } from '../store/watch-workflow';
import * as states from '../store/workflow-states';
import { followHeaders, type WorkflowContext } from './accept-workflow';

interface Subject {
  type: keyof typeof subjectPaths;
  id: string;
}

const pathOf = ({ type, id }: Subject): string => subjectPaths[type] + id;

/**
 * A type of resource that has workflows. Each type has its own paths, and all types share the handlers in this file.
 */
export interface WorkflowParent<Tx, Name extends string> {
  context: WorkflowContext<Tx>;
  /** The path parameter that has the resource's id. */
  param: Name;
  /** The subject of the resource's workflows and events. Its type must have a path in `subjectPaths`. */
  subjectOf(id: string): Subject;
  /** Throws the 404 of this type if the caller has no resource with this id. */
  assertThere(caller: Caller, id: string): Promise<unknown>;
}

export interface AboutParent<Name extends string> {
  caller: Caller;
  params: Readonly<Record<Name, string>>;
}

export type AboutWorkflow<Name extends string> = AboutParent<Name | 'workflowId'>;

export const scopeOf = <Tx, Name extends string>(
  parent: WorkflowParent<Tx, Name>,
  { caller, params }: AboutParent<Name>,
): WorkflowScope => ({
  orgId: caller.orgId,
  mode: caller.mode,
  subject: parent.subjectOf(params[parent.param]),
});

/**
 * Reads a workflow about one of the caller's resources. The workflow is kept after the resource is gone, so that a
 * client can follow a deletion to its end. Throws the resource's 404, or `workflow_not_found` if the resource exists.
 */
export async function readWorkflowOf<Tx, Name extends string>(
  parent: WorkflowParent<Tx, Name>,
  request: AboutWorkflow<Name>,
  sql: Sql = parent.context.database.sql(),
): Promise<VersionedWorkflow> {
  const { caller, params } = request;
  const found = await readWorkflow(sql, params.workflowId, scopeOf(parent, { caller, params }));
  if (found !== undefined) return found;
  await parent.assertThere(caller, params[parent.param]);
  throw problem('workflow_not_found');
}

export const getWorkflow = <Tx, Name extends string>(parent: WorkflowParent<Tx, Name>) => ({
  read: async (request: AboutWorkflow<Name>) => ({
    status: 200 as const,
    body: (await readWorkflowOf(parent, request)).view,
  }),
});

interface ListRequest<Name extends string> extends AboutParent<Name> {
  query: { cursor?: string | undefined; limit?: string | undefined } & WorkflowFilter;
  now: Date;
}

/** Lists the workflows of a resource. `list` is the endpoint; its cursors are not accepted by any other endpoint. */
export const listWorkflows = <Tx, Name extends string>(
  parent: WorkflowParent<Tx, Name>,
  list: Pick<EndpointDefinition, 'id'>,
) => ({
  read: async (request: ListRequest<Name>) => {
    const { pager, database } = parent.context;
    const { caller, params, query, now } = request;
    const id = params[parent.param];
    const binding = { list: list.id, keyId: caller.keyId, filter: listFilter(caller, query, id) };
    const page = pager.read(query, binding, now);
    const before = page.after === null ? {} : { beforeId: page.after };
    // One item more than requested is read. If it exists, the pager sets has_more.
    const { items } = await listRows(
      database.sql(),
      scopeOf(parent, request),
      { limit: page.limit + 1, ...before },
      query,
    );
    // The resource is checked only if no workflow is listed, because workflows are kept after the resource is gone.
    if (items.length === 0 && page.after === null) await parent.assertThere(caller, id);
    const body = pager.pageOf(items, page, binding, now, {
      positionOf: (workflow) => workflow.id,
      view: (workflow) => workflow,
    });
    return { status: 200 as const, body };
  },
});

type WatchRequest<Name extends string> = AboutWorkflow<Name> & { lastEventId: string | undefined; signal: AbortSignal };

/**
 * Streams the changes of a workflow as events. Changes in quick succession may be one event. The event's id is the
 * workflow's version, so a client that reconnects gets the newest version if it has missed a change. A client that
 * reconnects after the last event gets 204, after which it must not reconnect.
 */
export const watchWorkflow = <Tx, Name extends string>(parent: WorkflowParent<Tx, Name>) => ({
  stream: async (request: WatchRequest<Name>) => {
    const { lastEventId, signal, params } = request;
    const { version, view } = await readWorkflowOf(parent, request);
    const afterVersion = /^\d{1,9}$/.test(lastEventId ?? '') ? Number(lastEventId) : 0;
    const isOver = view.status === 'succeeded' || view.status === 'failed';
    if (isOver && version <= afterVersion) return null;
    const { database, listener } = parent.context;
    return eventsOf(watchVersions(database.sql(), params.workflowId, { afterVersion, signal, listener }));
  },
});

async function* eventsOf(versions: ReturnType<typeof watchVersions>): AsyncGenerator<StreamEvent> {
  for await (const { version, view } of versions) yield { id: String(version), event: 'workflow', data: view };
}

type DecideRequest<Name extends string> = AboutWorkflow<Name> & { afterCommit(work: () => unknown): void };

interface Decision {
  action: string;
  apply(sql: Sql, workflow: WorkflowView): Promise<void>;
  /** The milliseconds that the answer waits for a worker to carry out the decision. With 0 the answer does not wait. */
  waitMs: number;
}

/**
 * How long the answer waits for a worker, in milliseconds. A worker ends an abandoned workflow within milliseconds.
 * Without a worker, the answer shows the workflow as queued.
 */
const abandonWaitMs = 5_000;

/**
 * Records staff's decision about a workflow that waits for them, with its audit entry. Throws `workflow_not_waiting`.
 */
const decideWorkflow = <Tx, Name extends string>(
  parent: WorkflowParent<Tx, Name>,
  { action, apply, waitMs }: Decision,
) => ({
  execute: async (tx: Tx, request: DecideRequest<Name>): Promise<object> => {
    const { caller, params, afterCommit } = request;
    const { workflowId } = params;
    const { database, enqueue } = parent.context;
    const sql = database.sql(tx);
    const { view: waiting } = await readWorkflowOf(parent, request, sql);
    await apply(sql, waiting);
    const path = pathOf(parent.subjectOf(params[parent.param]));
    const { orgId, mode, keyId: actorKeyId } = caller;
    await audit(sql, { orgId, mode, actorKeyId, action, target: path, workflowId });
    afterCommit(() => enqueue({ workflowId, orgId, kind: waiting.kind }, 'interactive'));
    return {};
  },
  awaitOutcome: async (
    request: DecideRequest<Name>,
  ): Promise<{ status: 202; headers: Record<string, string>; body: WorkflowView }> => {
    const { params } = request;
    const { database, listener } = parent.context;
    if (waitMs > 0) {
      const changes = watchVersions(database.sql(), params.workflowId, {
        listener,
        signal: timeLimit(waitMs),
      });
      for await (const { view } of changes) if (view.status === 'failed') break;
    }
    const { view } = await readWorkflowOf(parent, request);
    return {
      status: 202,
      headers: followHeaders(pathOf(parent.subjectOf(params[parent.param])), params.workflowId),
      body: view,
    };
  },
});

/** Makes a workflow continue where it stopped. */
export const retryWorkflow = <Tx, Name extends string>(parent: WorkflowParent<Tx, Name>) =>
  decideWorkflow(parent, {
    action: 'workflow.retry',
    apply: (sql, { id }) => states.retryWorkflow(sql, id),
    waitMs: 0,
  });

/**
 * Ends a workflow as failed and unlocks its resource as it is. `leaves` describes for each kind of workflow the state
 * in which an abandoned workflow leaves its resource. The answer shows the description.
 */
export const abandonWorkflow = <Tx, Name extends string>(
  parent: WorkflowParent<Tx, Name>,
  leaves: Readonly<Record<string, string>> = {},
) =>
  decideWorkflow(parent, {
    action: 'workflow.abandon',
    apply: (sql, { id, kind }) => states.abandonWorkflow(sql, id, leaves[kind]),
    waitMs: abandonWaitMs,
  });
