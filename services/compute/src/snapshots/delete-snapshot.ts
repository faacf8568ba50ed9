import type { deleteServerSnapshot as endpoint } from '@drydock/contracts/compute-snapshots';
import { problem } from '@drydock/contracts/problem';
import { problems } from '@drydock/contracts/problems';
import type { SettleHandlers } from '@drydock/service-kit/route';
import { waitForStep } from '@drydock/workflow/wait-for-step';
import { lookedUp, providerUnavailable } from '../changes/provider-unavailable';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import type { MachineSnapshot } from '../providers/compute-machine.types';
import { acceptWorkflow } from '../server-workflows/accept-workflow';
import { assertAllowed, problemOf } from '../server-workflows/refuse';
import { readStartBy, startWithinSeconds } from '../server-workflows/start-by';
import { findUnfinished } from '../server-workflows/unfinished.store';
import { holdServer, readServer } from '../servers/find-server';
import { readerOf } from '../servers/look-at-machine';
import { refusalByWorkflow } from '../servers/server.rules';
import { deleteSnapshotHead } from './delete-snapshot.head';
import { refuseDeletion } from './snapshot.rules';

/** Past the time by which the work must have been taken up, so that it is decided either way. */
const waitMs = startWithinSeconds * 1_000 + 500;

/** Only a worker changes the world: the request waits for it, and answers 204 once the provider has deleted the snapshot. */
export const deleteSnapshot = (context: HandlerContext) =>
  ({
    look: async (request) => {
      const server = await readServer(context, request);
      assertAllowed(refusalByWorkflow(await findUnfinished(context.database.pool, server.id)));
      if (server.machineId === null) return null;
      return lookedUp(readerOf(context, server).readSnapshot(server.machineId, request.params.snapshotId));
    },
    act: async (tx: Tx, request, snapshot) => {
      const { deployTarget, machineId, id } = await holdServer(tx, request);
      assertAllowed(refusalByWorkflow(await findUnfinished(tx, id)) ?? refuseDeletion(snapshot));
      const input = { deployTarget, machineId, snapshotId: request.params.snapshotId };
      const startBy = await readStartBy(context.database.sql(tx));
      return { workflowId: await acceptWorkflow(context, tx, request, { id }, { definition: deleteSnapshotHead, input, startBy }) };
    },
    settle: async (_request, { workflowId }) => {
      const { database, listener } = context;
      const waited = await waitForStep(database, workflowId, 'follow', waitMs, { listener });
      if (waited.state === 'succeeded') return { status: 204 };
      if (waited.state === 'cancelled')
        throw problem('dependency_unavailable', { extra: { dependency: 'compute-worker' }, retryAfterSeconds: 5 });
      if (waited.state === 'failed' && problems[waited.problem.code].status === 422) throw problemOf(waited.problem);
      if (waited.state === 'failed') throw providerUnavailable();
      const detail = 'The deletion was begun and is not over yet. Deleting the snapshot again is harmless.';
      throw problem('dependency_unavailable', {
        detail,
        extra: { dependency: 'provider', workflow_id: workflowId },
        retryAfterSeconds: 30,
      });
    },
  }) satisfies SettleHandlers<typeof endpoint, Tx, MachineSnapshot | null, { workflowId: string }>;
