import type { deleteDatabase as endpoint } from '@drydock/contracts/databases/databases';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { acceptWorkflow, assertFree, followHeaders } from '@drydock/workflow/http/accept-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { changeStatus } from './database.store';
import { viewDatabase } from './database.view';
import { databasePath, databaseResourceKey, onDatabase } from './database-names';
import { deleteDatabaseWorkflow } from './delete-database.workflow';
import { holdDatabase } from './find-database';

export const deleteDatabase = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const managed = await holdDatabase(tx, request);
      await assertFree(context.database.sql(tx), databaseResourceKey(managed.id));
      const acceptance = {
        ...onDatabase(managed.id),
        definition: deleteDatabaseWorkflow,
        input: {},
        action: 'database.delete',
      };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      await changeStatus(tx, managed.id, 'deleting');
      const body = viewDatabase({ ...managed, status: 'deleting' });
      return { status: 202, headers: followHeaders(databasePath(managed.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
