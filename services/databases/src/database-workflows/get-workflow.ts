import type { getDatabaseWorkflow as endpoint } from '@drydock/contracts/database-workflows';
import type { ReadHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import { readDatabaseWorkflow } from './workflow-scope';

export const getWorkflow = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: (await readDatabaseWorkflow(context, request)).view }),
  }) satisfies ReadHandlers<typeof endpoint>;
