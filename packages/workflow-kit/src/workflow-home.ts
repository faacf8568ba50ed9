import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import type { Sql } from '@drydock/service/database/sql';
import { readWorkflow, type VersionedWorkflow, type WorkflowScope } from '@drydock/workflow/read-workflow';
import type { WorkflowContext } from './workflow-context';

/** What workflows are done to: each kind of it has its own paths, and the same handlers. */
export interface WorkflowHome<Tx, Name extends string> {
  context: WorkflowContext<Tx>;
  /** The path parameter that names it. */
  param: Name;
  subjectOf(id: string): WorkflowScope['subject'];
  pathOf(id: string): string;
  /** Throws the 404 of this kind when the caller has no such thing. */
  assertThere(caller: Caller, id: string): Promise<unknown>;
}

export interface AboutHome<Name extends string> {
  caller: Caller;
  params: Readonly<Record<Name, string>>;
}

export type AboutWorkflow<Name extends string> = AboutHome<Name | 'workflowId'>;

export const scopeOf = <Tx, Name extends string>(home: WorkflowHome<Tx, Name>, { caller, params }: AboutHome<Name>): WorkflowScope => ({
  orgId: caller.orgId,
  mode: caller.mode,
  subject: home.subjectOf(params[home.param]),
});

/**
 * The workflow, if it was done to this thing of the caller's. It outlives it, so that who follows a deletion sees how it ended.
 * Throws the thing's 404, or `workflow_not_found` of one that is there.
 */
export async function readHomeWorkflow<Tx, Name extends string>(
  home: WorkflowHome<Tx, Name>,
  request: AboutWorkflow<Name>,
  sql: Sql = home.context.database.sql(),
): Promise<VersionedWorkflow> {
  const { caller, params } = request;
  const found = await readWorkflow(sql, params.workflowId, scopeOf(home, { caller, params }));
  if (found !== undefined) return found;
  await home.assertThere(caller, params[home.param]);
  throw problem('workflow_not_found');
}
