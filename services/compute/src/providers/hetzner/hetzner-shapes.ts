import { z } from 'zod';
import type { Machine, MachineSnapshot, PowerState, ProviderAction } from '../compute.types';

/** Ids are integers up to 2^53-1; only fields that are used are parsed. Source: the public schema of February 2026. */
const id = z.int().positive();

export const actionSchema = z.object({
  id,
  command: z.string(),
  status: z.enum(['running', 'success', 'error']),
  progress: z.number().nullish(),
  resources: z.array(z.object({ id, type: z.string() })),
  error: z.object({ code: z.string(), message: z.string() }).nullish(),
});
export type HetznerAction = z.infer<typeof actionSchema>;

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

/** `next_page` null or missing: the last one. */
export const metaSchema = z.object({ pagination: z.object({ next_page: z.int().positive().nullish() }) });

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

export const machineOf = (server: HetznerServer): Machine => ({
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

/** Null for an image that is not this machine's snapshot or backup, or is gone. */
export function snapshotOf(image: HetznerImage, machineId: string): MachineSnapshot | null {
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

export const actionOf = ({ id, command, status, progress, error }: HetznerAction): ProviderAction => ({
  id: String(id),
  command,
  state: states[status],
  progress: progress ?? null,
  // The public samples have an error on actions that run or succeed, so it counts only for failed ones.
  failure:
    status === 'error'
      ? { reason: 'rejected', internal: `${command}: ${error?.code ?? ''} ${error?.message ?? ''}` }
      : null,
});

/** Whether the action works on this machine. */
export const concerns = ({ resources }: HetznerAction, machineId: string): boolean =>
  resources.some(({ id, type }) => type === 'server' && String(id) === machineId);
