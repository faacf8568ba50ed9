import { deleteServerSnapshot as endpoint } from '@drydock/contracts/compute/compute-snapshots';
import { problem } from '@drydock/contracts/platform/problem';
import type { AwaitHandlers } from '@drydock/service/http';
import {
  acceptWorkflow,
  assertAllowed,
  assertFree,
  problemOf,
  readStartBy,
  startDecidedMs,
} from '@drydock/workflow/http';
import { waitForStep } from '@drydock/workflow/store';
import { providerUnavailable, readForRequest } from '../changes/provider-failure';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import type { MachineSnapshot } from '../providers/compute.types';
import { readerOf } from '../servers/machine-work';
import { onServer, serverResourceKey } from '../servers/server.types';
import { readLockedServer, readServer } from '../servers/server-record';
import { deleteSnapshotWorkflow } from './delete-snapshot.workflow';
import { readNamedSnapshot } from './list-snapshots';
import { refuseDeletion } from './snapshot.rules';

const declared: ReadonlySet<string> = new Set(endpoint.problems);

/**
 * Has a worker delete a snapshot, because the API may change nothing at a provider. Waits for the worker, and answers
 * 204 once the provider has deleted the snapshot.
 */
export const deleteSnapshot = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const server = await readServer(context, request);
      await assertFree(context.database.sql(), serverResourceKey(server.id));
      const { machineId } = server;
      if (machineId === null) return null;
      const reader = readerOf(context, server);
      return readForRequest((signal) => readNamedSnapshot(reader, machineId, request.params.snapshotId, signal));
    },
    execute: async (tx: Tx, request, snapshot) => {
      const { deployTarget, machineId, id } = await readLockedServer(tx, request);
      const sql = context.database.sql(tx);
      await assertFree(sql, serverResourceKey(id));
      assertAllowed(refuseDeletion(snapshot));
      const input = { deployTarget, machineId, snapshotId: request.params.snapshotId };
      const work = { definition: deleteSnapshotWorkflow, input, action: null, startBy: await readStartBy(sql) };
      return { workflowId: await acceptWorkflow(context, tx, request, { ...onServer(id), ...work }) };
    },
    awaitOutcome: async (_request, { workflowId }) => {
      const { database, listener } = context;
      const waited = await waitForStep(database, workflowId, 'follow', startDecidedMs, { listener });
      if (waited.state === 'succeeded') return { status: 204 };
      if (waited.state === 'cancelled')
        throw problem('dependency_unavailable', { extra: { dependency: 'compute-worker' }, retryAfterSeconds: 5 });
      if (waited.state === 'failed' && declared.has(waited.problem.code)) throw problemOf(waited.problem);
      // Any other failure is the provider's, so a later call of the same kind may succeed.
      if (waited.state === 'failed') throw providerUnavailable();
      const detail = 'The deletion was begun and is not over yet. Deleting the snapshot again is harmless.';
      throw problem('dependency_unavailable', {
        detail,
        extra: { dependency: 'provider', workflow_id: workflowId },
        retryAfterSeconds: 30,
      });
    },
  }) satisfies AwaitHandlers<typeof endpoint, Tx, MachineSnapshot | null, { workflowId: string }>;
