import { lookedUp, providerUnavailable } from '../changes/provider-failure';
import type { HandlerContext } from '../context/context';
import type { Checkpoint, Machine } from '../providers/compute.types';
import type { ComputeReader } from '../providers/compute-provider';
import { targetOf } from '../providers/targets';
import type { Server } from './server.types';

/** Throws 503 if the server's range is not configured any more. */
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
 * The oldest record that is accepted. Since an older one, another change of the machine may have run, which would be
 * taken for the one that is accepted now.
 */
const beforeMsMax = 2_000;

/**
 * The provider's record of the machine just before an overwrite of it is accepted. It is part of the workflow's input,
 * so that an overwrite that was sent is recognised even if all later records are lost. Null if the provider does not
 * answer; the workflow then asks for itself.
 */
export async function lookBefore(context: Pick<HandlerContext, 'targets'>, server: Server): Promise<Checkpoint | null> {
  const { machineId } = server;
  if (machineId === null) return null;
  return readerOf(context, server)
    .prepareEarly(machineId, AbortSignal.timeout(beforeMsMax))
    .catch(() => null);
}

/** The machine as its provider knows it now, null if there is none, and the provider's capabilities. */
export async function lookAtMachine(
  context: Pick<HandlerContext, 'targets'>,
  server: Server,
): Promise<{ machine: Machine | null; capabilities: readonly string[] }> {
  const reader = readerOf(context, server);
  const { machineId } = server;
  const machine = machineId === null ? null : await lookedUp((signal) => reader.readMachine(machineId, signal));
  return { machine, capabilities: reader.capabilities };
}
