import type { getServerWorkflow as endpoint } from '@drydock/contracts/compute-workflows';
import type { ReadHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import { readServerWorkflow } from './workflow-scope';

export const getWorkflow = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: (await readServerWorkflow(context, request)).view }),
  }) satisfies ReadHandlers<typeof endpoint>;
