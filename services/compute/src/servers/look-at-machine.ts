import { lookedUp, providerUnavailable } from '../changes/provider-unavailable';
import type { HandlerContext } from '../context';
import type { Machine } from '../providers/compute-machine.types';
import type { ComputeReader } from '../providers/compute-provider';
import type { Server } from './server.types';
import { targetOf } from './targets';

/** Throws 503 when nobody is configured any more to ask about the server. */
export function readerOf({ targets }: Pick<HandlerContext, 'targets'>, server: Pick<Server, 'mode' | 'deployTarget'>): ComputeReader {
  const target = targetOf(targets, server);
  if (target === undefined) throw providerUnavailable(new Error(`no provider is configured for ${server.deployTarget} (${server.mode})`));
  return target.provider;
}

/** The machine as its provider knows it now, null when there is none, and what that provider can do. */
export async function lookAtMachine(
  context: Pick<HandlerContext, 'targets'>,
  server: Server,
): Promise<{ machine: Machine | null; capabilities: readonly string[] }> {
  const reader = readerOf(context, server);
  const { machineId } = server;
  const machine = machineId === null ? null : await lookedUp((signal) => reader.readMachine(machineId, signal));
  return { machine, capabilities: reader.capabilities };
}
