import type { rebuildComputeServer as endpoint } from '@drydock/contracts/compute-servers';
import type { ActHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import type { Machine } from '../providers/compute-machine.types';
import { acceptWorkflow, followHeaders } from '../server-workflows/accept-workflow';
import { assertAllowed } from '../server-workflows/refuse';
import { findUnfinished } from '../server-workflows/unfinished.store';
import { holdServer, readServer } from './find-server';
import { lookAtMachine } from './look-at-machine';
import { rebuildServerHead } from './rebuild-server.head';
import { refusalByWorkflow, refuseRebuild } from './server.rules';
import { holdMachine } from './server.store';
import { viewServer } from './server.view';

export const rebuildServer = (context: HandlerContext) =>
  ({
    look: async (request) => {
      const server = await readServer(context, request);
      assertAllowed(refusalByWorkflow(await findUnfinished(context.database.pool, server.id)));
      return lookAtMachine(context, server);
    },
    act: async (tx: Tx, request, { machine, capabilities }) => {
      const server = await holdServer(tx, request);
      const unfinished = await findUnfinished(tx, server.id);
      assertAllowed(refusalByWorkflow(unfinished) ?? refuseRebuild(server, machine, capabilities));
      const { deployTarget, machineId, powerState: powerBefore } = server;
      const input = { deployTarget, machineId, image: request.body.image, powerBefore };
      const workflowId = await acceptWorkflow(context, tx, request, server, { definition: rebuildServerHead, input });
      await holdMachine(tx, server.id);
      const held = { ...server, operable: false, powerState: 'rebooting' } as const;
      return { status: 202, headers: followHeaders(server.id, workflowId), body: viewServer(held, context.targets, request.now) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, { machine: Machine | null; capabilities: readonly string[] }>;
