import type { deleteComputeServer, preflightComputeServerDeletion } from '@drydock/contracts/compute/compute-servers';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { refusalByWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowed, assertFree, followHeaders, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import { readForRequest } from '../changes/provider-failure';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { deleteServerWorkflow } from './delete-server.workflow';
import { readerOf } from './machine-work';
import { billingOf, type DeletionWorld, isAnothers, refuseDeletion } from './server.rules';
import { beginTermination } from './server.store';
import { onServer, type Server, serverPath, serverResourceKey } from './server.types';
import { readLockedServer, readServer, viewServer } from './server-record';

/** The facts that decide a deletion, read from the provider now. */
async function readDeletionWorld(context: Pick<HandlerContext, 'targets'>, server: Server): Promise<DeletionWorld> {
  const reader = readerOf(context, server);
  const { id, machineId } = server;
  return readForRequest(async (signal) => {
    const machine =
      machineId === null ? await reader.findMachine(id, signal) : await reader.readMachine(machineId, signal);
    if (machine !== null && isAnothers(machine, server)) return { machine: null, snapshots: [] };
    const snapshotsOf = machine?.id ?? machineId;
    return { machine, snapshots: snapshotsOf === null ? [] : await reader.listSnapshots(snapshotsOf, signal) };
  });
}

/**
 * Accepts the deletion of a server's machine with its disk and snapshots. {@link deleteServerWorkflow} carries out the
 * deletion.
 */
export const deleteServer = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const server = await readServer(context, request);
      // This check comes first, because no answer of the provider would change its result.
      await assertFree(context.database.sql(), serverResourceKey(server.id));
      return readDeletionWorld(context, server);
    },
    execute: async (tx: Tx, request, world) => {
      const server = await readLockedServer(tx, request);
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
  }) satisfies ExecuteHandlers<typeof deleteComputeServer, Tx, DeletionWorld>;

export const preflightDeletion = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, requestId } = request;
      const server = await readServer(context, request);
      const unfinished = await findUnfinished(context.database.sql(), serverResourceKey(server.id));
      const world = await readDeletionWorld(context, server);
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
  }) satisfies ReadHandlers<typeof preflightComputeServerDeletion>;

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
