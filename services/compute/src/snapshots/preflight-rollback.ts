import type { preflightComputeServerRollback as endpoint } from '@drydock/contracts/compute/compute-snapshots';
import type { ReadHandlers } from '@drydock/service/http/route';
import { refusalByWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import { readServer } from '../servers/find-server';
import { serverResourceKey } from '../servers/server-names';
import { lookAtSnapshot } from './look-at-snapshot';
import { viewPreflight } from './preflight-rollback.view';
import { refuseRollback } from './snapshot.rules';

/** The preflight of a rollback: asks the same rules and changes nothing. */
export const preflightRollback = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, params, requestId } = request;
      const server = await readServer(context, request);
      const unfinished = await findUnfinished(context.database.sql(), serverResourceKey(server.id));
      const world = await lookAtSnapshot(context, server, params.snapshotId);
      const refusal = refusalByWorkflow(unfinished) ?? refuseRollback(server, world);
      return {
        status: 200,
        body: viewPreflight(server, world, refusal === null ? null : problemOf(refusal).body(requestId), now),
      };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
