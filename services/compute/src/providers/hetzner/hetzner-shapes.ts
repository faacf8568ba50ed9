import type { ProviderAction } from '../compute-change.types';
import type { Machine, MachineSnapshot, PowerState } from '../compute-machine.types';
import type { HetznerAction, HetznerImage, HetznerServer } from './hetzner-schemas';

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

/** Whether it works on this machine. */
export const concerns = ({ resources }: HetznerAction, machineId: string): boolean =>
  resources.some(({ id, type }) => type === 'server' && String(id) === machineId);
