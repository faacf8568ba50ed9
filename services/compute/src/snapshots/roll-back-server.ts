import type { rollBackComputeServer as endpoint } from '@drydock/contracts/compute/compute-snapshots';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { assertAllowed, assertFree } from '@drydock/workflow/http/accept-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import type { Checkpoint } from '../providers/compute-change.types';
import { acceptMachineWork } from '../servers/accept-machine-work';
import { holdServer, readServer } from '../servers/find-server';
import { lookBefore } from '../servers/look-at-machine';
import { serverResourceKey } from '../servers/server-names';
import { lookAtSnapshot } from './look-at-snapshot';
import { rollBackServerWorkflow } from './roll-back-server.workflow';
import { type RollbackWorld, refuseRollback } from './snapshot.rules';

/** Accepts that the live disk is overwritten with the snapshot, which {@link rollBackServerWorkflow} carries out. */
export const rollBackServer = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const server = await readServer(context, request);
      // This comes before the provider is asked, because its answer would make no difference.
      await assertFree(context.database.sql(), serverResourceKey(server.id));
      const world = await lookAtSnapshot(context, server, request.params.snapshotId);
      return { world, before: await lookBefore(context, server) };
    },
    execute: async (tx: Tx, request, { world, before }) => {
      const server = await holdServer(tx, request);
      await assertFree(context.database.sql(tx), serverResourceKey(server.id));
      assertAllowed(refuseRollback(server, world));
      const { deployTarget, machineId, powerState: powerBefore } = server;
      const input = { deployTarget, machineId, snapshotId: request.params.snapshotId, powerBefore, before };
      const work = {
        definition: rollBackServerWorkflow,
        input,
        action: 'server.roll_back',
        meanwhile: 'rebooting',
      } as const;
      return acceptMachineWork(context, tx, request, { server, ...work });
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, { world: RollbackWorld; before: Checkpoint | null }>;
