import type { rebuildComputeServer as endpoint } from '@drydock/contracts/compute/compute-servers';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { assertAllowed, assertFree } from '@drydock/workflow/http/accept-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import type { Checkpoint } from '../providers/compute-change.types';
import type { Machine } from '../providers/compute-machine.types';
import { acceptMachineWork } from './accept-machine-work';
import { holdServer, readServer } from './find-server';
import { lookAtMachine, lookBefore } from './look-at-machine';
import { rebuildServerWorkflow } from './rebuild-server.workflow';
import { refuseRebuild } from './server.rules';
import { serverResourceKey } from './server-names';

export const rebuildServer = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const server = await readServer(context, request);
      await assertFree(context.database.sql(), serverResourceKey(server.id));
      return { ...(await lookAtMachine(context, server)), before: await lookBefore(context, server) };
    },
    execute: async (tx: Tx, request, { machine, capabilities, before }) => {
      const server = await holdServer(tx, request);
      await assertFree(context.database.sql(tx), serverResourceKey(server.id));
      assertAllowed(refuseRebuild(server, machine, capabilities));
      const { deployTarget, machineId, powerState: powerBefore } = server;
      const input = { deployTarget, machineId, image: request.body.image, powerBefore, before };
      const work = {
        definition: rebuildServerWorkflow,
        input,
        action: 'server.rebuild',
        meanwhile: 'rebooting',
      } as const;
      return acceptMachineWork(context, tx, request, { server, ...work });
    },
  }) satisfies ExecuteHandlers<
    typeof endpoint,
    Tx,
    { machine: Machine | null; capabilities: readonly string[]; before: Checkpoint | null }
  >;
