import type { deleteComputeServer as endpoint } from '@drydock/contracts/compute/compute-servers';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { acceptWorkflow, assertAllowed, assertFree, followHeaders } from '@drydock/workflow/http/accept-workflow';
import { lookedUp } from '../changes/provider-unavailable';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { deleteServerWorkflow } from './delete-server.workflow';
import { holdServer, readServer } from './find-server';
import { readerOf } from './look-at-machine';
import { type DeletionWorld, isAnothers, refuseDeletion } from './server.rules';
import { beginTermination } from './server.store';
import type { Server } from './server.types';
import { viewServer } from './server.view';
import { onServer, serverPath, serverResourceKey } from './server-names';

/** The facts that decide a deletion, read from the provider now. */
export async function lookForDeletion(
  context: Pick<HandlerContext, 'targets'>,
  server: Server,
): Promise<DeletionWorld> {
  const reader = readerOf(context, server);
  const { id, machineId } = server;
  return lookedUp(async (signal) => {
    const machine =
      machineId === null ? await reader.findMachine(id, signal) : await reader.readMachine(machineId, signal);
    if (machine !== null && isAnothers(machine, server)) return { machine: null, snapshots: [] };
    const snapshotsOf = machine?.id ?? machineId;
    return { machine, snapshots: snapshotsOf === null ? [] : await reader.listSnapshots(snapshotsOf, signal) };
  });
}

/** Accepts the deletion of machine, disk and snapshots, which {@link deleteServerWorkflow} carries out. */
export const deleteServer = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const server = await readServer(context, request);
      // This comes before the provider is asked, because its answer would make no difference.
      await assertFree(context.database.sql(), serverResourceKey(server.id));
      return lookForDeletion(context, server);
    },
    execute: async (tx: Tx, request, world) => {
      const server = await holdServer(tx, request);
      await assertFree(context.database.sql(tx), serverResourceKey(server.id));
      assertAllowed(refuseDeletion(server, world));
      const { id, deployTarget, machineId, status, message, operable, powerState } = server;
      const input = { deployTarget, machineId, before: { status, message, operable, powerState } };
      const acceptance = { ...onServer(id), definition: deleteServerWorkflow, input, action: 'server.delete' };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      const ending = {
        status: 'terminating',
        message: '',
        operable: false,
        powerState: world.machine === null ? 'unknown' : 'stopping',
      } as const;
      await beginTermination(tx, id, ending.powerState);
      const body = viewServer({ ...server, ...ending }, context.targets, request.now);
      return { status: 202, headers: followHeaders(serverPath(id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, DeletionWorld>;
