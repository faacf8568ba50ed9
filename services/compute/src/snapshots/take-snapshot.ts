import type { takeServerSnapshot as endpoint } from '@drydock/contracts/compute/compute-snapshots';
import { problems } from '@drydock/contracts/platform/problems';
import type { AwaitHandlers } from '@drydock/service/http';
import { acceptWorkflow, assertAllowed, assertFree, followHeaders, problemOf } from '@drydock/workflow/http';
import { waitForStep } from '@drydock/workflow/store';
import { z } from 'zod';
import { providerUnavailable, readForRequest } from '../changes/provider-failure';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { readerOf } from '../servers/machine-work';
import { onServer, serverPath, serverResourceKey } from '../servers/server.types';
import { readLockedServer, readServer } from '../servers/server-record';
import { refuseFurther, refuseSnapshot } from './snapshot.rules';
import { takeSnapshotWorkflow } from './take-snapshot.workflow';

/** The part of the output of the step `send` that the answer shows. */
const sentSchema = z.looseObject({ snapshotId: z.string().nullable() });

/**
 * The time for which the answer waits for the snapshot's id. The provider usually gives it within a second or two. A
 * slower snapshot is accepted and shown without its id.
 */
const waitMs = 5_000;
/** The time limit for counting the snapshots. Counting and `waitMs` together must fit into the time of a request. */
const countMsMax = 10_000;

interface Accepted {
  workflowId: string;
  description: string;
  createdAt: string;
}

export const takeSnapshot = (context: HandlerContext) =>
  ({
    /** Resolves with the number of the server's snapshots, or with 0 if `execute` will refuse the request anyway. */
    preload: async (request) => {
      const server = await readServer(context, request);
      await assertFree(context.database.sql(), serverResourceKey(server.id));
      const reader = readerOf(context, server);
      const { machineId } = server;
      if (machineId === null || refuseSnapshot(server, reader.capabilities) !== null) return 0;
      return (await readForRequest((signal) => reader.listSnapshots(machineId, signal), countMsMax)).length;
    },
    execute: async (tx: Tx, request, used) => {
      const server = await readLockedServer(tx, request);
      await assertFree(context.database.sql(tx), serverResourceKey(server.id));
      const refusal = refuseSnapshot(server, readerOf(context, server).capabilities);
      assertAllowed(refusal ?? refuseFurther(used, context.snapshotsMax));
      const { deployTarget, machineId } = server;
      const { description = '' } = request.body;
      const input = { deployTarget, machineId, description };
      const acceptance = { ...onServer(server.id), definition: takeSnapshotWorkflow, input, action: null };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      return { workflowId, description, createdAt: request.now.toISOString() };
    },
    awaitOutcome: async ({ params }, { workflowId, description, createdAt }) => {
      const { database, listener } = context;
      const waited = await waitForStep(database, workflowId, 'send', waitMs, { listener });
      if (waited.state === 'failed')
        throw problems[waited.problem.code].status === 422 ? problemOf(waited.problem) : providerUnavailable();
      const id = (waited.state === 'succeeded' ? sentSchema.parse(waited.output).snapshotId : null) ?? '';
      const snapshot = { id, description, status: 'creating', created_at: createdAt, size_gb: null } as const;
      const body = { ...snapshot, workflow_id: workflowId };
      return { status: 202, headers: followHeaders(serverPath(params.serverId), workflowId), body };
    },
  }) satisfies AwaitHandlers<typeof endpoint, Tx, number, Accepted>;
