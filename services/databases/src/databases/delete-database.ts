import type { deleteDatabase as endpoint } from '@drydock/contracts/databases';
import type { ActHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { acceptWorkflow, followHeaders } from '../database-workflows/accept-workflow';
import { assertAllowed } from '../database-workflows/refuse';
import { findUnfinished } from '../database-workflows/unfinished.store';
import { refusalByWorkflow } from './database.rules';
import { changeStatus } from './database.store';
import { viewDatabase } from './database.view';
import { deleteDatabaseHead } from './delete-database.head';
import { holdDatabase } from './find-database';

export const deleteDatabase = (context: HandlerContext) =>
  ({
    act: async (tx: Tx, request) => {
      const managed = await holdDatabase(tx, request);
      assertAllowed(refusalByWorkflow(await findUnfinished(tx, managed.id)));
      const acceptance = { definition: deleteDatabaseHead, input: {}, action: 'database.delete' };
      const workflowId = await acceptWorkflow(context, tx, request, managed.id, acceptance);
      await changeStatus(tx, managed.id, 'deleting');
      return { status: 202, headers: followHeaders(managed.id, workflowId), body: viewDatabase({ ...managed, status: 'deleting' }) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, undefined>;
