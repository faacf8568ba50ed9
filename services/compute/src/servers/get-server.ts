import type { getComputeServer as endpoint } from '@drydock/contracts/compute/compute-servers';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { readServer } from './find-server';
import { viewServer } from './server.view';

export const getServer = (context: HandlerContext) =>
  ({
    read: async (request) => ({
      status: 200,
      body: viewServer(await readServer(context, request), context.targets, request.now),
    }),
  }) satisfies ReadHandlers<typeof endpoint>;
