import { z } from 'zod';
import type { Call } from '../protocol/call';
import { invalidField, refused } from './hetzner-errors';
import {
  type Action,
  type HetznerWorld,
  type Image,
  imagesOf,
  isLocked,
  locationNamed,
  type Server,
  type ServerType,
  typeNamed,
} from './hetzner-world';

const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}+00:00`;

/** Returns the elapsed part of the action's duration in percent. It is below 100 until the action ends. */
function progressOf({ status, started, endsAt }: Action, now: number): number {
  if (status !== 'running') return 100;
  return Math.min(99, Math.floor((100 * (now - started)) / Math.max(1, endsAt - started)));
}

export const showAction = ({ clock }: HetznerWorld, action: Action) => ({
  id: action.id,
  command: action.command,
  status: action.status,
  progress: progressOf(action, clock.now()),
  started: timeOf(action.started),
  finished: action.finished === null ? null : timeOf(action.finished),
  resources: [
    { id: action.serverId, type: 'server' },
    ...(action.command === 'create_image' && action.imageId !== null ? [{ id: action.imageId, type: 'image' }] : []),
  ],
  error: action.status === 'error' ? { code: 'action_failed', message: 'Action failed' } : null,
});

export const showServerType = (type: ServerType) => ({
  ...type,
  description: type.name.toUpperCase(),
  storage_type: 'local',
  cpu_type: 'shared',
  prices: [],
  deprecated: false,
});

/** Reads the operating system from the name of an image, such as `debian-12`. An image of a customer has no name. */
function osOf(name: string | null): { os_flavor: string; os_version: string | null } {
  const [flavor, version] = name?.split('-') ?? [];
  return { os_flavor: flavor ?? 'unknown', os_version: version ?? null };
}

export const showImage = (image: Image) => ({
  id: image.id,
  type: image.type,
  status: image.status,
  name: image.name,
  description: image.description,
  image_size: image.imageSize,
  disk_size: image.diskSize,
  created: timeOf(image.created),
  created_from: image.createdFrom,
  bound_to: image.boundTo,
  ...osOf(image.name),
  architecture: image.architecture,
  rapid_deploy: image.type === 'system',
  protection: { delete: image.isDeleteProtected },
  deprecated: null,
  deleted: null,
  labels: image.labels,
});

export function showServer(world: HetznerWorld, server: Server) {
  const type = typeNamed(server.serverType);
  const image = imagesOf(world, server.project).find(({ id }) => id === server.imageId);
  return {
    id: server.id,
    name: server.name,
    status: server.status,
    created: timeOf(server.created),
    public_net: {
      ipv4:
        server.ipv4 === null
          ? null
          : { id: server.id + 1, ip: server.ipv4, blocked: false, dns_ptr: `static.${server.ipv4}.clients.example` },
      ipv6: server.ipv6 === null ? null : { id: server.id + 2, ip: server.ipv6, blocked: false, dns_ptr: [] },
      floating_ips: [],
      firewalls: [],
    },
    private_net: [],
    server_type: type === undefined ? null : showServerType(type),
    location: locationNamed(server.location),
    image: image === undefined ? null : showImage(image),
    iso: null,
    rescue_enabled: false,
    locked: isLocked(world, server),
    backup_window: null,
    outgoing_traffic: 123_456,
    ingoing_traffic: 123_456,
    included_traffic: 654_321,
    protection: { delete: server.isProtected, rebuild: server.isProtected },
    labels: server.labels,
    volumes: [],
    load_balancers: [],
    primary_disk_size: type?.disk ?? 0,
    placement_group: null,
  };
}

const labels = z.record(
  z.string().regex(/^(?:[a-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/),
  z.string().regex(/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/),
);
const serverName = z.string().regex(/^[a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$/);
const userData = z.string().max(32 * 1024);
/** An id or a name. The public schema says string, but Hetzner also accepts the numbers that clients send. */
const idOrName = z.union([z.string().min(1), z.int().transform(String)]);

/**
 * Bodies of the implemented calls, with the fields and types of the public schema. Other fields are refused, so that a
 * driver cannot send fields that do not exist.
 */
export const bodySchemas = {
  createServer: z.strictObject({
    name: serverName,
    server_type: idOrName,
    image: idOrName,
    location: idOrName.optional(),
    start_after_create: z.boolean().optional(),
    ssh_keys: z.array(z.string()).optional(),
    volumes: z.array(z.int()).optional(),
    networks: z.array(z.int()).optional(),
    firewalls: z.array(z.strictObject({ firewall: z.int() })).optional(),
    placement_group: z.int().optional(),
    user_data: userData.optional(),
    labels: labels.optional(),
    automount: z.boolean().optional(),
    public_net: z
      .strictObject({
        enable_ipv4: z.boolean().optional(),
        enable_ipv6: z.boolean().optional(),
        ipv4: z.int().nullable().optional(),
        ipv6: z.int().nullable().optional(),
      })
      .optional(),
  }),
  updateServer: z.strictObject({ name: serverName.optional(), labels: labels.optional() }),
  createImage: z.strictObject({
    type: z.enum(['snapshot', 'backup']).optional(),
    description: z.string().optional(),
    labels: labels.optional(),
  }),
  rebuild: z.strictObject({ image: idOrName, user_data: userData.optional() }),
  updateImage: z.strictObject({
    description: z.string().optional(),
    type: z.literal('snapshot').optional(),
    labels: labels.optional(),
  }),
};

/** Parses a body. @throws Refusal 400 or 422 */
export function parseBody<T>(schema: z.ZodType<T>, call: Call): T {
  const parsed = schema.safeParse(readJson(call));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalidField(
    issue?.code === 'unrecognized_keys' ? issue.keys.join(', ') : (issue?.path.join('.') ?? ''),
    issue?.message ?? 'invalid',
  );
}

function readJson({ body, headers }: Call): unknown {
  if (body.length === 0) return {};
  if (!(headers['content-type'] ?? '').startsWith('application/json'))
    throw refused('json_error', 'request body must be application/json');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw refused('json_error', 'invalid JSON in request');
  }
}

/** Allows only the query parameters of the public schema. @throws Refusal 422 for another parameter */
export function allowQuery({ query }: Call, names: readonly string[]): void {
  for (const name of query.keys()) if (!names.includes(name)) throw invalidField(name, 'unknown parameter');
}

/** Refuses a body where the public schema has none. @throws Refusal 422 */
export function allowNoBody({ body }: Call): void {
  if (body.length > 0) throw refused('invalid_input', 'no body expected');
}

const perPageMax = 50;

function wholeNumber(call: Call, name: string, fallback: number): number {
  const text = call.query.get(name);
  if (text === null) return fallback;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw invalidField(name, 'must be a positive integer');
  return Number(text);
}

/** Returns a page of a listing, with its `meta`. A per_page above 50 counts as 50. */
export function pageOf<T>(call: Call, items: readonly T[]): { items: T[]; meta: unknown } {
  const page = wholeNumber(call, 'page', 1);
  const perPage = Math.min(wholeNumber(call, 'per_page', 25), perPageMax);
  const lastPage = Math.max(1, Math.ceil(items.length / perPage));
  return {
    items: items.slice((page - 1) * perPage, page * perPage),
    meta: {
      pagination: {
        page,
        per_page: perPage,
        previous_page: page > 1 ? page - 1 : null,
        next_page: page < lastPage ? page + 1 : null,
        last_page: lastPage,
        total_entries: items.length,
      },
    },
  };
}

/**
 * Sorts by a query such as `sort=created:desc`. @throws Refusal 422 for a field that the listing cannot be sorted by
 */
export function sorted<T extends Readonly<Record<string, unknown>>>(
  call: Call,
  items: readonly T[],
  fields: readonly string[],
): T[] {
  const wish = call.query.get('sort') ?? 'id:asc';
  const [field = '', direction = 'asc'] = wish.split(':');
  if (!fields.includes(field) || !['asc', 'desc'].includes(direction))
    throw invalidField('sort', `cannot sort by ${wish}`);
  const sign = direction === 'asc' ? 1 : -1;
  return [...items].sort((one, other) => sign * compare(one[field], other[field]));
}

function compare(one: unknown, other: unknown): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return String(one) < String(other) ? -1 : String(one) > String(other) ? 1 : 0;
}

/** Tells whether labels match a selector such as `key=value,key2,!key3`. */
export const matchesLabels = (selector: string, labels: Readonly<Record<string, string>>): boolean =>
  selector.split(',').every((part) => {
    if (part.startsWith('!')) return !Object.hasOwn(labels, part.slice(1));
    const [key = '', value] = part.split(/==?/);
    return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
  });
