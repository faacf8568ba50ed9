import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import type { Checkpoint, ProviderAction } from '../compute.types';
import { ComputeError, type ComputeReader } from '../compute-provider';
import type { ProviderApi, Query } from '../http/provider-api';
import {
  actionOf,
  actionSchema,
  concerns,
  type HetznerAction,
  imageSchema,
  machineOf,
  metaSchema,
  serverSchema,
  snapshotOf,
} from './hetzner-shapes';

const perPage = ['per_page', '50'] as const;
/** 10,000 objects: more than a project may hold. */
const pagesMax = 200;

/** Ids are numbers; any other text names nothing, and is not sent. */
export const isId = (id: string): boolean => /^[1-9]\d{0,15}$/.test(id) && Number.isSafeInteger(Number(id));

/** One page of a listing whose items are under `name`. */
const pageSchema = <T>(name: string, item: z.ZodType<T>) =>
  z.looseObject({ meta: metaSchema }).transform((page, context) => {
    const items = z.array(item).safeParse(page[name]);
    if (items.success) return { items: items.data, nextPage: page.meta.pagination.next_page ?? null };
    context.addIssue(`no list of ${name}`);
    return z.NEVER;
  });

async function readPages<T>(
  api: ProviderApi,
  name: string,
  query: Query,
  item: z.ZodType<T>,
  signal?: AbortSignal,
): Promise<T[]> {
  const schema = pageSchema(name, item);
  const items: T[] = [];
  for (let page: number | null = 1, read = 0; page !== null && read < pagesMax; read += 1) {
    const answer: z.infer<typeof schema> | null = await api.read(
      [name],
      [...query, perPage, ['page', String(page)]],
      schema,
      signal,
    );
    // A listing may be empty but never missing: a 404 means a wrong URL, and not that everything has vanished.
    if (answer === null) throw new ComputeError('rejected', `there is no listing of ${name} at this address`);
    items.push(...answer.items);
    page = answer.nextPage;
  }
  return items;
}

/** The actions of the machine, newest first; empty when the machine is gone. */
export async function readActions(
  api: ProviderApi,
  machineId: string,
  query: Query,
  signal?: AbortSignal,
): Promise<HetznerAction[]> {
  const schema = z.object({ actions: z.array(actionSchema) });
  const page = await api.read(
    ['servers', machineId, 'actions'],
    [...query, ['sort', 'id:desc'], perPage],
    schema,
    signal,
  );
  const actions = page?.actions ?? [];
  if (!actions.every((action) => concerns(action, machineId)))
    throw new ComputeError('foreign', `actions of another server than ${machineId}`);
  return actions;
}

export interface Seen {
  highestActionId: number;
}

/** The machine's newest action: every later change has a higher id. */
export async function prepareOn(api: ProviderApi, machineId: string | null, signal?: AbortSignal): Promise<Checkpoint> {
  const [newest] = machineId === null ? [] : await readActions(api, machineId, [], signal);
  return JSON.stringify({ highestActionId: newest?.id ?? 0 } satisfies Seen);
}

export function hetznerReader(api: ProviderApi): ComputeReader {
  const poll = createPolls(api);
  return {
    provider: 'hetzner',
    capabilities: ['compute:snapshots', 'compute:rebuild'],
    readMachine: async (machineId, signal) => {
      if (!isId(machineId)) return null;
      const answer = await api.read(['servers', machineId], [], z.object({ server: serverSchema }), signal);
      if (answer === null) return null;
      if (String(answer.server.id) !== machineId)
        throw new ComputeError('foreign', `asked for server ${machineId}, told of another`);
      return machineOf(answer.server);
    },
    findMachine: async (name, signal) => {
      const servers = await readPages(api, 'servers', [['name', name]], serverSchema, signal);
      const server = servers.find((candidate) => candidate.name === name);
      return server === undefined ? null : machineOf(server);
    },
    listMachines: async (signal) => (await readPages(api, 'servers', [], serverSchema, signal)).map(machineOf),
    listSnapshots: async (machineId, signal) => {
      const query: Query = [
        ['type', 'snapshot'],
        ['type', 'backup'],
        ['sort', 'created:desc'],
      ];
      // The provider cannot filter by the machine that a snapshot was made from.
      const images = await readPages(api, 'images', query, imageSchema, signal);
      return images.map((image) => snapshotOf(image, machineId)).filter((snapshot) => snapshot !== null);
    },
    readSnapshot: async (machineId, snapshotId, signal) => {
      if (!isId(snapshotId)) return null;
      const answer = await api.read(['images', snapshotId], [], z.object({ image: imageSchema }), signal);
      if (answer === null || String(answer.image.id) !== snapshotId) return null;
      return snapshotOf(answer.image, machineId);
    },
    readRunningAction: async (machineId, signal) => {
      if (!isId(machineId)) return null;
      const [action] = await readActions(api, machineId, [['status', 'running']], signal);
      return action === undefined ? null : actionOf(action);
    },
    prepareEarly: (machineId, signal) => prepareOn(api, machineId, signal),
    readAction: (machineId, actionId, signal) => {
      if (!isId(actionId)) return Promise.reject(new ComputeError('action_not_found', 'an action has a number'));
      return poll(machineId, actionId, signal);
    },
  };
}

/**
 * Collects the polls of many workflows into one call: ids that are asked for within a moment go together, as many as
 * the provider's own client sends.
 */
const gatherMs = 30;
const idsMax = 25;

// Each action is parsed separately: an odd one must not hide all others.
const actionsSchema = z.object({ actions: z.array(z.unknown()) });
const idSchema = z.object({ id: z.int() });
type Found = ReadonlyMap<string, unknown>;

function createPolls(
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
    const page = await api.read(['actions'], query, actionsSchema);
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
