import { locationNamed, type ServerType, typeNamed } from './catalogue';
import type { Action, Image, Server } from './hetzner-state';
import { type HetznerWorld, imagesOf, isLocked } from './hetzner-world';

const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}+00:00`;

/** Rises with the clock. 100 is reached only at the end. */
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

/**
 * The system of an image that the provider named, such as `debian-12`. The name of a customer's own image does not say
 * it.
 */
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
