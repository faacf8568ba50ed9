import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import type { Checkpoint, Machine, MachineSnapshot, PowerState, ProviderAction } from '../compute.types';
import { ComputeError, type ComputeReader } from '../compute-provider';
import type { ProviderApi, Query } from '../http/provider-api';

/**
 * The schemas parse only fields that are used. Ids are integers up to 2^53-1. Source: the provider's public schema of
 * February 2026.
 */
const id = z.int().positive();

export const actionSchema = z.object({
  id,
  command: z.string(),
  status: z.enum(['running', 'success', 'error']),
  progress: z.number().nullish(),
  resources: z.array(z.object({ id, type: z.string() })),
  error: z.object({ code: z.string(), message: z.string() }).nullish(),
});
type HetznerAction = z.infer<typeof actionSchema>;

const address = z.object({ ip: z.string() }).nullish();

export const serverSchema = z.object({
  id,
  name: z.string(),
  status: z.string(),
  locked: z.boolean(),
  protection: z.object({ rebuild: z.boolean(), delete: z.boolean() }),
  public_net: z.object({ ipv4: address, ipv6: address }).nullish(),
  server_type: z.object({ name: z.string(), architecture: z.string().nullish() }),
  location: z.object({ name: z.string() }).nullish(),
  // The provider is removing this field. Older answers have the location only here.
  datacenter: z.object({ location: z.object({ name: z.string() }) }).nullish(),
  image: z.object({ id, name: z.string().nullish() }).nullish(),
  primary_disk_size: z.number().nullish(),
});
type HetznerServer = z.infer<typeof serverSchema>;

export const imageSchema = z.object({
  id,
  type: z.string(),
  status: z.string(),
  description: z.string(),
  image_size: z.number().nullish(),
  disk_size: z.number(),
  created: z.iso.datetime({ offset: true }),
  created_from: z.object({ id }).nullish(),
  bound_to: id.nullish(),
  architecture: z.string().nullish(),
  protection: z.object({ delete: z.boolean() }),
  deleted: z.string().nullish(),
});
type HetznerImage = z.infer<typeof imageSchema>;

/** A missing or null `next_page` marks the last page. The provider may leave out the total of a listing. */
const metaSchema = z.object({
  pagination: z.object({ next_page: z.int().positive().nullish(), total_entries: z.int().nonnegative().nullish() }),
});

export const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

const powerStates: Readonly<Record<string, PowerState>> = {
  running: 'on',
  off: 'off',
  initializing: 'starting',
  starting: 'starting',
  stopping: 'stopping',
  deleting: 'stopping',
  rebuilding: 'rebooting',
};

const machineOf = (server: HetznerServer): Machine => ({
  id: String(server.id),
  name: server.name,
  vendorStatus: server.status,
  powerState: Object.hasOwn(powerStates, server.status) ? (powerStates[server.status] ?? 'unknown') : 'unknown',
  addresses: [server.public_net?.ipv4?.ip, server.public_net?.ipv6?.ip].filter((ip) => ip !== undefined),
  isLocked: server.locked,
  isRebuildProtected: server.protection.rebuild,
  isDeleteProtected: server.protection.delete,
  spec: server.server_type.name,
  zone: server.location?.name ?? server.datacenter?.location.name ?? null,
  image: server.image?.name ?? (server.image == null ? null : String(server.image.id)),
  architecture: server.server_type.architecture ?? null,
  diskGb: server.primary_disk_size ?? null,
});

/**
 * The image as a snapshot of this machine. Null if the image belongs to another machine, is neither a snapshot nor a
 * backup, or was deleted.
 */
function snapshotOf(image: HetznerImage, machineId: string): MachineSnapshot | null {
  const isOurs = String(image.created_from?.id) === machineId || String(image.bound_to) === machineId;
  const isSnapshot = image.type === 'snapshot' || image.type === 'backup';
  if (!isOurs || !isSnapshot || (image.deleted ?? null) !== null) return null;
  return {
    id: String(image.id),
    description: image.description,
    status: image.status === 'creating' || image.status === 'available' ? image.status : 'unavailable',
    createdAt: new Date(image.created),
    sizeGb: image.image_size ?? null,
    architecture: image.architecture ?? null,
    diskGb: image.disk_size,
    newerIds: [],
    isDeleteProtected: image.protection.delete,
  };
}

const states = { running: 'running', success: 'succeeded', error: 'failed' } as const;

const actionOf = ({ id, command, status, progress, error }: HetznerAction): ProviderAction => ({
  id: String(id),
  command,
  state: states[status],
  progress: progress ?? null,
  // The public samples show an `error` even for actions that run or succeed, so only a failed action's `error` counts.
  failure:
    status === 'error'
      ? { reason: 'rejected', internal: `${command}: ${error?.code ?? ''} ${error?.message ?? ''}` }
      : null,
});

/** Whether the action works on this machine. */
export const concerns = ({ resources }: HetznerAction, machineId: string): boolean =>
  resources.some(({ id, type }) => type === 'server' && String(id) === machineId);

const perPage = ['per_page', '50'] as const;
/**
 * The largest number of pages of a listing. They hold 10,000 objects, which is more than a project may have. A longer
 * listing is refused.
 */
const pagesMax = 200;

/** Whether the text is an id of the provider. Any other text names no object, so the driver does not send it. */
export const isId = (id: string): boolean => /^[1-9]\d{0,15}$/.test(id) && Number.isSafeInteger(Number(id));

/** One page of a listing whose items are under `name`. `total` is the number of items of all pages, if it is known. */
const pageSchema = <T>(name: string, item: z.ZodType<T>) =>
  z.looseObject({ meta: metaSchema }).transform((page, context) => {
    const items = z.array(item).safeParse(page[name]);
    const { next_page: nextPage = null, total_entries: total = null } = page.meta.pagination;
    if (items.success) return { items: items.data, nextPage, total };
    context.addIssue(`no list of ${name}`);
    return z.NEVER;
  });

/** The most attempts to read a listing while items are deleted from it. */
const listingsMax = 5;

/** Reads a whole listing, newest item first. */
async function readPages<T extends { id: number }>(
  api: ProviderApi,
  name: string,
  query: Query,
  item: z.ZodType<T>,
  signal?: AbortSignal,
): Promise<T[]> {
  for (let begun = 0; begun < listingsMax; begun += 1) {
    const items = await readPagesOnce(api, name, query, item, signal);
    if (items !== null) return items;
  }
  throw new ComputeError('unavailable', `items are deleted from the listing of ${name} whenever it is read`);
}

/**
 * Reads the pages of a listing one after the other. Null if the listing became shorter meanwhile, because an item may
 * have moved from an unread page to a page that was read before. New items come first, so they only move items to
 * unread pages.
 */
async function readPagesOnce<T extends { id: number }>(
  api: ProviderApi,
  name: string,
  query: Query,
  item: z.ZodType<T>,
  signal?: AbortSignal,
): Promise<T[] | null> {
  const schema = pageSchema(name, item);
  const items = new Map<number, T>();
  let totalBefore = 0;
  for (let page: number | null = 1, read = 0; page !== null; read += 1) {
    // An object that a cut listing lacks would count as deleted.
    if (read === pagesMax) throw new ComputeError('rejected', `there are more than ${pagesMax} pages of ${name}`);
    const answer: z.infer<typeof schema> | null = await api.read(
      [name],
      [...query, ['sort', 'id:desc'], perPage, ['page', String(page)]],
      schema,
      signal,
    );
    // A listing may be empty but never missing. A 404 means a wrong URL, and must not make all machines look vanished.
    if (answer === null) throw new ComputeError('rejected', `there is no listing of ${name} at this address`);
    if (answer.total !== null && answer.total < totalBefore) return null;
    totalBefore = answer.total ?? totalBefore;
    for (const one of answer.items) items.set(one.id, one);
    page = answer.nextPage;
  }
  return [...items.values()];
}

/** The label that names the machine of a snapshot. The provider cannot filter by the machine itself. */
export const machineLabel = 'drydock-machine';

/**
 * Reads every image that can be a snapshot of the machine. Only snapshots with the label of another machine are left
 * out, so the number of pages does not depend on the other customers of the project. A snapshot without the label was
 * made in the provider's console or by a release that did not set it.
 */
async function readImagesOf(api: ProviderApi, machineId: string, signal?: AbortSignal): Promise<HetznerImage[]> {
  const queries: Query[] = [
    [
      ['type', 'snapshot'],
      ['label_selector', `!${machineLabel}`],
    ],
    [
      ['type', 'snapshot'],
      ['label_selector', `${machineLabel}=${machineId}`],
    ],
    [
      ['type', 'backup'],
      ['bound_to', machineId],
    ],
  ];
  const images = new Map<number, HetznerImage>();
  // The listings are read one after the other, so that an abort leaves at most one call under way.
  for (const query of queries)
    for (const image of await readPages(api, 'images', query, imageSchema, signal)) images.set(image.id, image);
  return [...images.values()];
}

/** The newest actions of the machine, at most 50, newest first; empty when the machine is gone. */
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

/** Makes a checkpoint of the id of the machine's newest action. The action of every later change has a higher id. */
export async function prepareOn(api: ProviderApi, machineId: string | null, signal?: AbortSignal): Promise<Checkpoint> {
  const [newest] = machineId === null ? [] : await readActions(api, machineId, [], signal);
  return JSON.stringify({ highestActionId: newest?.id ?? 0 } satisfies Seen);
}

export function hetznerReader(api: ProviderApi): ComputeReader {
  const poll = createPolls(api);
  return {
    provider: 'hetzner',
    capabilities: ['compute:snapshots', 'compute:rebuild', 'compute:ssh_keys'],
    // Drydock orders every machine without SSH keys.
    changesRootPassword: true,
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
      const images = isId(machineId) ? await readImagesOf(api, machineId, signal) : [];
      return images
        .map((image) => snapshotOf(image, machineId))
        .filter((snapshot) => snapshot !== null)
        .sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime() || Number(other.id) - Number(one.id));
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
 * Reads of actions are collected for `gatherMs` and then sent as one call, so that many workflows share a call. A call
 * has at most `idsMax` ids, as many as the provider's own client sends.
 */
const gatherMs = 30;
const idsMax = 25;

// Each action is parsed separately, so that an unreadable action does not hide the readable actions.
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

/**
 * Ends the wait of one caller when its `signal` aborts. The call itself continues for the other callers that wait for
 * it.
 */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
