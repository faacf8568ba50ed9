import type { ServerPowerState } from '@drydock/contracts/compute/compute-servers';
import { timeLimit } from '@drydock/process';
import { type Acceptance, type Asking, acceptWorkflow, followHeaders } from '@drydock/workflow/http';
import { providerUnavailable, readForRequest } from '../changes/provider-failure';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import type { Checkpoint, Machine } from '../providers/compute.types';
import { type ComputeReader, targetOf } from '../providers/compute-provider';
import { holdMachine } from './server.store';
import { onServer, type Server, serverPath } from './server.types';
import { viewServer } from './server-record';

/** The reader of the server's target. Throws 503 if the target is not configured any more. */
export function readerOf(
  { targets }: Pick<HandlerContext, 'targets'>,
  server: Pick<Server, 'mode' | 'deployTarget'>,
): ComputeReader {
  const target = targetOf(targets, server);
  if (target === undefined)
    throw providerUnavailable(new Error(`no provider is configured for ${server.deployTarget} (${server.mode})`));
  return target.provider;
}

/**
 * The time limit for reading the early checkpoint. If another change begins between the checkpoint and the acceptance,
 * `find` mistakes that change for this work. So little time may pass between the two.
 */
const earlyMsMax = 2_000;

/**
 * The checkpoint of the machine just before a change is accepted, for the workflow's input. With it `find` recognises
 * the change even if the database is later restored to a moment before the workflow's first step. Null if the server
 * has no machine, or if the provider does not answer or has no early checkpoint.
 */
export async function readEarlyCheckpoint(
  context: Pick<HandlerContext, 'targets'>,
  server: Server,
): Promise<Checkpoint | null> {
  const { machineId } = server;
  if (machineId === null) return null;
  return readerOf(context, server)
    .prepareEarly(machineId, timeLimit(earlyMsMax))
    .catch(() => null);
}

/** The machine as its provider knows it now (null if there is none) and the provider's capabilities. */
export async function readServerMachine(
  context: Pick<HandlerContext, 'targets'>,
  server: Server,
): Promise<{ machine: Machine | null; capabilities: readonly string[] }> {
  const reader = readerOf(context, server);
  const { machineId } = server;
  const machine = machineId === null ? null : await readForRequest((signal) => reader.readMachine(machineId, signal));
  return { machine, capabilities: reader.capabilities };
}

interface MachineWork {
  server: Server;
  /** The power state to show until the work has ended. */
  meanwhile: ServerPowerState;
}

/**
 * Accepts work that stops or starts the server's machine, and makes the server inoperable. Resolves with the answer, a
 * 202.
 */
export async function acceptMachineWork<Input>(
  context: HandlerContext,
  tx: Tx,
  request: Asking & { now: Date },
  { server, meanwhile, ...work }: MachineWork & Pick<Acceptance<Input>, 'definition' | 'input' | 'action'>,
) {
  const workflowId = await acceptWorkflow(context, tx, request, { ...onServer(server.id), ...work });
  await holdMachine(tx, server.id, meanwhile);
  const held = { ...server, operable: false, powerState: meanwhile };
  const headers = followHeaders(serverPath(server.id), workflowId);
  return { status: 202 as const, headers, body: viewServer(held, context.targets, request.now) };
}
