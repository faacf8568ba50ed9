import { z } from 'zod';
import { diskSchema } from '../protocol/admin-routes';
import type { Call, PathValues, Reply } from '../protocol/call';
import { type Clock, clockAnchorSchema } from '../protocol/clock';
import { type LedgerFile, ledgerEntrySchema, type StateFile } from '../protocol/state-file';
import { refused } from './hetzner-errors';

const labels = z.record(z.string(), z.string());

export const serverStatuses = [
  'initializing',
  'starting',
  'running',
  'stopping',
  'off',
  'deleting',
  'migrating',
  'rebuilding',
  'unknown',
] as const;

/** In this file, all times are milliseconds since 1970 in the emulator's time. */
const serverSchema = z.strictObject({
  id: z.int(),
  project: z.string(),
  name: z.string(),
  serverType: z.string(),
  location: z.string(),
  imageId: z.int().nullable(),
  status: z.enum(serverStatuses),
  /** True if the server is locked although no action is listed for it. */
  isHiddenLocked: z.boolean(),
  isProtected: z.boolean(),
  /** Whether the order had SSH keys or user data. If not, root gets a new password at the creation and each rebuild. */
  hasKeys: z.boolean().default(false),
  /** The user data of the order or of the last rebuild that had some. */
  userData: z.string().default(''),
  labels,
  created: z.number(),
  ipv4: z.string().nullable(),
  ipv6: z.string().nullable(),
  disk: diskSchema,
});

const imageSchema = z.strictObject({
  id: z.int(),
  /** Null for an image of the provider. */
  project: z.string().nullable(),
  type: z.enum(['system', 'app', 'snapshot', 'backup']),
  status: z.enum(['creating', 'available', 'unavailable']),
  name: z.string().nullable(),
  description: z.string(),
  imageSize: z.number().nullable(),
  diskSize: z.number(),
  created: z.number(),
  createdFrom: z.strictObject({ id: z.int(), name: z.string() }).nullable(),
  boundTo: z.int().nullable(),
  architecture: z.enum(['x86', 'arm']),
  isDeleteProtected: z.boolean(),
  labels,
  disk: diskSchema,
});

const actionSchema = z.strictObject({
  id: z.int(),
  project: z.string(),
  command: z.string(),
  status: z.enum(['running', 'success', 'error']),
  started: z.number(),
  endsAt: z.number(),
  finished: z.number().nullable(),
  serverId: z.int(),
  imageId: z.int().nullable(),
  willFail: z.boolean(),
  /** The content that the disk gets when the action succeeds. This content is fixed at the start of the action. */
  disk: diskSchema.nullable(),
  /**
   * The server's status before the action. A failed action restores this status, but a failed creation leaves the
   * server `off`.
   */
  statusBefore: z.enum(serverStatuses),
});

export const hetznerStateSchema = z.strictObject({
  clock: clockAnchorSchema,
  lastId: z.int(),
  lastEntry: ledgerEntrySchema.nullable(),
  servers: z.array(serverSchema),
  images: z.array(imageSchema),
  actions: z.array(actionSchema),
});

type HetznerState = z.infer<typeof hetznerStateSchema>;
export type Server = z.infer<typeof serverSchema>;
export type Image = z.infer<typeof imageSchema>;
export type Action = z.infer<typeof actionSchema>;

/** The server types that can be ordered. Memory and disks are in GB. */
export const serverTypes = [
  { id: 22, name: 'cpx11', cores: 2, memory: 2, disk: 40, architecture: 'x86' },
  { id: 23, name: 'cpx21', cores: 3, memory: 4, disk: 80, architecture: 'x86' },
  { id: 24, name: 'cpx31', cores: 4, memory: 8, disk: 160, architecture: 'x86' },
  { id: 45, name: 'cax11', cores: 2, memory: 4, disk: 40, architecture: 'arm' },
] as const;
export type ServerType = (typeof serverTypes)[number];

export const locations = [
  {
    id: 1,
    name: 'fsn1',
    description: 'Falkenstein DC Park 1',
    country: 'DE',
    city: 'Falkenstein',
    network_zone: 'eu-central',
    latitude: 50.47612,
    longitude: 12.370071,
  },
  {
    id: 2,
    name: 'nbg1',
    description: 'Nuremberg DC Park 1',
    country: 'DE',
    city: 'Nuremberg',
    network_zone: 'eu-central',
    latitude: 49.452102,
    longitude: 11.076665,
  },
  {
    id: 3,
    name: 'hel1',
    description: 'Helsinki DC Park 1',
    country: 'FI',
    city: 'Helsinki',
    network_zone: 'eu-central',
    latitude: 60.169855,
    longitude: 24.938379,
  },
] as const;

export const typeNamed = (name: string) => serverTypes.find((type) => type.name === name || String(type.id) === name);
export const locationNamed = (name: string) =>
  locations.find((location) => location.name === name || String(location.id) === name);

const systemImage = (id: number, name: string, architecture: 'x86' | 'arm'): Image => ({
  id,
  project: null,
  type: 'system',
  status: 'available',
  name,
  description: name,
  imageSize: null,
  diskSize: 5,
  created: Date.UTC(2024, 3, 25),
  createdFrom: null,
  boundTo: null,
  architecture,
  isDeleteProtected: false,
  labels: {},
  disk: { '/etc/hostname': `${name}\n` },
});

const systemImages: readonly Image[] = [
  systemImage(161547269, 'ubuntu-24.04', 'x86'),
  systemImage(161547270, 'ubuntu-24.04', 'arm'),
  systemImage(114690387, 'debian-12', 'x86'),
  systemImage(114690389, 'debian-12', 'arm'),
];

/**
 * Servers with this label ignore requests to shut down or restart. As at the real provider, the action succeeds but has
 * no effect.
 */
const deafLabel = 'emulator.deaf';
const asksTheGuest = (command: string): boolean => command === 'shutdown_server' || command === 'reboot_server';
export const goesUnheard = ({ labels }: Server, command: string): boolean =>
  deafLabel in labels && asksTheGuest(command);

/** Ends all actions that are due by `now`, in the order of their ends. Returns whether any action ended. */
function endDueActions(state: HetznerState, now: number): boolean {
  const over = state.actions.filter(({ status, endsAt }) => status === 'running' && endsAt <= now);
  for (const action of over.sort((one, other) => one.endsAt - other.endsAt)) endAction(state, action);
  return over.length > 0;
}

/** The files that cloud-init writes at the first boot. Of all its settings only SSH keys, in JSON, are known here. */
function writtenByCloudInit(userData: string): Record<string, string> {
  try {
    const { ssh_authorized_keys: keys } = cloudConfigSchema.parse(JSON.parse(userData.replace(/^#cloud-config\n/, '')));
    return { '/root/.ssh/authorized_keys': keys.map((key) => `${key}\n`).join('') };
  } catch {
    return {};
  }
}

const cloudConfigSchema = z.looseObject({ ssh_authorized_keys: z.array(z.string()) });

function endAction(state: HetznerState, action: Action): void {
  action.status = action.willFail ? 'error' : 'success';
  action.finished = action.endsAt;
  endImage(state, action);
  const server = state.servers.find(({ id }) => id === action.serverId);
  if (server === undefined) return;
  if (action.willFail) {
    server.status = action.statusBefore === 'initializing' ? 'off' : action.statusBefore;
    return;
  }
  if (action.disk !== null && action.command !== 'create_image')
    server.disk = { ...action.disk, ...writtenByCloudInit(server.userData) };
  if (action.command === 'rebuild_server') server.imageId = action.imageId;
  if (action.command === 'delete_server') {
    state.servers = state.servers.filter(({ id }) => id !== server.id);
    // The provider removes backups with their server, but keeps snapshots.
    state.images = state.images.filter(({ boundTo }) => boundTo !== server.id);
  }
  if (!goesUnheard(server, action.command)) server.status = statusAfter[action.command] ?? server.status;
}

const statusAfter: Readonly<Record<string, 'running' | 'off'>> = {
  create_server: 'running',
  rebuild_server: 'running',
  start_server: 'running',
  reboot_server: 'running',
  reset_server: 'running',
  stop_server: 'off',
  shutdown_server: 'off',
};

function endImage(state: HetznerState, action: Action): void {
  if (action.command !== 'create_image') return;
  const image = state.images.find(({ id }) => id === action.imageId);
  if (image === undefined) return;
  image.status = action.willFail ? 'unavailable' : 'available';
  image.imageSize = action.willFail ? null : 1.2;
}

/** The duration of each command in seconds of the emulator's time. */
export type ActionSeconds = Readonly<Record<string, number>>;

export interface HetznerWorld {
  readonly state: HetznerState;
  readonly clock: Clock;
  readonly actionSeconds: ActionSeconds;
  nextId(): number;
  /** Saves the state, and then writes the accepted action, if there is one, to the ledger. */
  save(taken?: { action: Action; detail: string }): void;
  endDue(): void;
}

export function openWorld(
  state: HetznerState,
  {
    clock,
    file,
    ledger,
    actionSeconds,
  }: { clock: Clock; file: StateFile<HetznerState>; ledger: LedgerFile; actionSeconds: ActionSeconds },
): HetznerWorld {
  const save: HetznerWorld['save'] = (taken) => {
    state.clock = clock.anchor;
    if (taken === undefined) return file.write(state);
    const { action, detail } = taken;
    const entry = {
      seq: (state.lastEntry?.seq ?? 0) + 1,
      time: new Date(action.started).toISOString(),
      project: action.project,
      resource: String(action.serverId),
      op: action.command,
      action_id: String(action.id),
      detail,
      fence: '0' as const,
      workflow_id: null,
      outcome: 'accepted' as const,
    };
    state.lastEntry = entry;
    file.write(state);
    ledger.append(entry);
  };
  return {
    state,
    clock,
    actionSeconds,
    nextId: () => {
      state.lastId += 1;
      return state.lastId;
    },
    save,
    endDue: () => {
      if (endDueActions(state, clock.now())) save();
    },
  };
}

/**
 * Finds a server by id in the caller's project. A server of another project gets the same answer as a missing server.
 * @throws Refusal 404
 */
export function requireServer({ state }: HetznerWorld, project: string, id: string): Server {
  const server = state.servers.find((candidate) => candidate.project === project && String(candidate.id) === id);
  if (server === undefined) throw refused('not_found', `server with ID '${id}' not found`);
  return server;
}

export const imagesOf = ({ state }: HetznerWorld, project: string): Image[] => [
  ...systemImages,
  ...state.images.filter((image) => image.project === project),
];

/** Finds an image by id among those of the provider and of the project. @throws Refusal 404 */
export function requireImage(world: HetznerWorld, project: string, id: string): Image {
  const image = imagesOf(world, project).find((candidate) => String(candidate.id) === id);
  if (image === undefined) throw refused('not_found', `image with ID '${id}' not found`);
  return image;
}

const runningActionOf = ({ state }: HetznerWorld, server: Server): Action | undefined =>
  state.actions.find((action) => action.serverId === server.id && action.status === 'running');

export const isLocked = (world: HetznerWorld, server: Server): boolean =>
  server.isHiddenLocked || runningActionOf(world, server) !== undefined;

/** The duration of each command in seconds, about as at the real provider. Other commands take one second. */
export const usualActionSeconds: ActionSeconds = {
  create_server: 8,
  rebuild_server: 12,
  create_image: 6,
  delete_server: 2,
  start_server: 2,
  stop_server: 1,
  shutdown_server: 3,
  reboot_server: 3,
  reset_server: 1,
};

/** Returns shorter durations for a demonstration, where the emulator's time must equal real time. */
export const fasterActions = (speed: number): ActionSeconds =>
  Object.fromEntries(Object.entries(usualActionSeconds).map(([command, seconds]) => [command, seconds / speed]));

/** Handles a call of the project to which its token belongs. */
type ProjectHandler = (world: HetznerWorld, project: string, call: Call, values: PathValues) => Reply;

export interface ProjectRoute {
  method: string;
  pattern: string;
  handle: ProjectHandler;
}

export const protocolAt = (method: string, path: string, handle: ProjectHandler): ProjectRoute => ({
  method,
  pattern: `/v1${path}`,
  handle,
});
