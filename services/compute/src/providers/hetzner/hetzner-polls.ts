import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import type { ProviderAction } from '../compute.types';
import { ComputeError } from '../compute-provider';
import type { ProviderApi } from '../http/provider-api';
import { actionOf, actionSchema, concerns } from './hetzner-shapes';

/**
 * Collects the polls of many workflows into one call: ids that are asked for within a moment go together, as many as
 * the provider's own client sends.
 */
const gatherMs = 30;
const idsMax = 25;

// Each action is parsed separately: an odd one must not hide all others.
const pageSchema = z.object({ actions: z.array(z.unknown()) });
const idSchema = z.object({ id: z.int() });
type Found = ReadonlyMap<string, unknown>;

export function createPolls(
  api: ProviderApi,
): (machineId: string, actionId: string, signal?: AbortSignal) => Promise<ProviderAction> {
  let gathering: { ids: Set<string>; found: Promise<Found> } | null = null;

  const gather = (id: string): Promise<Found> => {
    if (gathering === null || gathering.ids.size >= idsMax) {
      const ids = new Set<string>();
      gathering = { ids, found: wait(gatherMs).then(() => fetchAll(ids)) };
    }
    gathering.ids.add(id);
    return gathering.found;
  };
  const fetchAll = async (ids: ReadonlySet<string>): Promise<Found> => {
    if (gathering?.ids === ids) gathering = null;
    const query = [...[...ids].map((id) => ['id', id] as const), ['per_page', '50'] as const];
    const page = await api.read(['actions'], query, pageSchema);
    if (page === null) throw new ComputeError('unavailable', 'the provider knows no actions');
    return new Map(page.actions.map((action) => [String(idSchema.safeParse(action).data?.id), action]));
  };

  return async (machineId, actionId, signal) => {
    const found = await untilAborted(gather(actionId), signal);
    const raw = found.get(actionId);
    if (raw === undefined) throw new ComputeError('action_not_found', `no action ${actionId}`);
    const parsed = actionSchema.safeParse(raw);
    if (!parsed.success)
      throw new ComputeError('unavailable', `action ${actionId} cannot be read`, { cause: parsed.error });
    if (!concerns(parsed.data, machineId))
      throw new ComputeError('foreign', `action ${actionId} is not of server ${machineId}`);
    return actionOf(parsed.data);
  };
}

/** Ends the wait of one caller. The call itself continues for the other callers that wait for it. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
