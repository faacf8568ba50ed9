import type { preflightComputeServerDeletion as endpoint } from '@drydock/contracts/compute/compute-servers';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ReadHandlers } from '@drydock/service/http/route';
import { refusalByWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import { billingOf } from './billing.rules';
import { lookForDeletion } from './delete-server';
import { readServer } from './find-server';
import { type DeletionWorld, refuseDeletion } from './server.rules';
import type { Server } from './server.types';
import { serverPath, serverResourceKey } from './server-names';

/** The preflight of a deletion: asks the same rules and changes nothing. */
export const preflightDeletion = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, requestId } = request;
      const server = await readServer(context, request);
      const unfinished = await findUnfinished(context.database.sql(), serverResourceKey(server.id));
      const world = await lookForDeletion(context, server);
      const refusal = refusalByWorkflow(unfinished) ?? refuseDeletion(server, world);
      const body = {
        would: `Delete ${server.name} with its disk, its addresses and all of its snapshots`,
        resource: serverPath(server.id),
        point: null,
        space: null,
        refusal: refusal === null ? null : problemOf(refusal).body(requestId),
        findings: findingsOf(server, world, now),
        undo: false as const,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

function findingsOf(server: Server, { machine, snapshots }: DeletionWorld, now: Date): Preflight['findings'] {
  const { mode, status, charged_until: paidUntil } = billingOf(server, now);
  const isPaidAhead = mode === 'term' && status === 'active' && paidUntil !== null && new Date(paidUntil) > now;
  const findings: Array<Preflight['findings'][number] | false> = [
    machine === null && { level: 'INFO', code: 'machine_missing', detail: 'The provider knows no such machine.' },
    machine?.powerState === 'on' && {
      level: 'WARNING',
      code: 'server_running',
      detail: 'Its power is cut without notice.',
    },
    snapshots.length > 0 && {
      level: 'WARNING',
      code: 'snapshots_deleted',
      detail: `Snapshots that are deleted with it: ${snapshots.length}.`,
    },
    isPaidAhead && { level: 'WARNING', code: 'term_not_over', detail: `It is paid for until ${paidUntil}.` },
  ];
  return findings.filter((finding) => finding !== false);
}
