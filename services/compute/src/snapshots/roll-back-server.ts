import type { rollBackComputeServer as endpoint } from '@drydock/contracts/compute-snapshots';
import type { ActHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { acceptWorkflow, followHeaders } from '../server-workflows/accept-workflow';
import { assertAllowed } from '../server-workflows/refuse';
import { findUnfinished } from '../server-workflows/unfinished.store';
import { holdServer, readServer } from '../servers/find-server';
import { refusalByWorkflow } from '../servers/server.rules';
import { holdMachine } from '../servers/server.store';
import { viewServer } from '../servers/server.view';
import { lookAtSnapshot } from './look-at-snapshot';
import { rollBackServerHead } from './roll-back-server.head';
import { type RollbackWorld, refuseRollback } from './snapshot.rules';

/** Endpoint 8: accepts that the live disk is overwritten with the snapshot; {@link rollBackServerHead} does it. */
export const rollBackServer = (context: HandlerContext) =>
  ({
    look: async (request) => {
      const server = await readServer(context, request);
      // Before the provider is asked: an operation in progress is the answer whatever it would say.
      assertAllowed(refusalByWorkflow(await findUnfinished(context.database.pool, server.id)));
      return lookAtSnapshot(context, server, request.params.snapshotId);
    },
    act: async (tx: Tx, request, world) => {
      const server = await holdServer(tx, request);
      assertAllowed(refusalByWorkflow(await findUnfinished(tx, server.id)) ?? refuseRollback(server, world));
      const { deployTarget, machineId, powerState: powerBefore } = server;
      const input = { deployTarget, machineId, snapshotId: request.params.snapshotId, powerBefore };
      const workflowId = await acceptWorkflow(context, tx, request, server, { definition: rollBackServerHead, input });
      await holdMachine(tx, server.id);
      const held = { ...server, operable: false, powerState: 'rebooting' } as const;
      return { status: 202, headers: followHeaders(server.id, workflowId), body: viewServer(held, context.targets, request.now) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, RollbackWorld>;
