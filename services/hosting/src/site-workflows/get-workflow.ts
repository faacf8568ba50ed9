import type { getSiteWorkflow as endpoint } from '@drydock/contracts/site-workflows';
import type { ReadHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import { readSiteWorkflow } from './workflow-scope';

export const getWorkflow = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: (await readSiteWorkflow(context, request)).view }),
  }) satisfies ReadHandlers<typeof endpoint>;
