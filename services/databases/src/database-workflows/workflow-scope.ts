import { problem } from '@drydock/contracts/problem';
import type { Sql } from '@drydock/database/sql';
import type { Caller } from '@drydock/service-kit/internal-token';
import { readWorkflow, type VersionedWorkflow, type WorkflowScope } from '@drydock/workflow/read-workflow';
import { type HandlerContext, ownerOf } from '../context';
import { databaseSubject } from '../databases/database-names';
import { readDatabase } from '../databases/find-database';

interface AboutWorkflow {
  caller: Caller;
  params: { databaseId: string; workflowId: string };
}

export const scopeOf = ({ caller, params }: { caller: Caller; params: { databaseId: string } }): WorkflowScope => ({
  ...ownerOf(caller),
  subject: databaseSubject(params.databaseId),
});

/**
 * The workflow, if it was done to this database of the caller's. It outlives its database, so that who follows a deletion sees how it ended.
 * Throws `database_not_found`, or `workflow_not_found` of a database that is there.
 */
export async function readDatabaseWorkflow(context: HandlerContext, request: AboutWorkflow, sql?: Sql): Promise<VersionedWorkflow> {
  const found = await readWorkflow(sql ?? context.database.sql(), request.params.workflowId, scopeOf(request));
  if (found !== undefined) return found;
  await readDatabase(context, request);
  throw problem('workflow_not_found');
}
