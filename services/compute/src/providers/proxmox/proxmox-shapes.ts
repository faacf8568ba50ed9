import { BlockList, isIP } from 'node:net';
import type { z } from 'zod';
import type { Machine, MachineSnapshot, PowerState } from '../compute-machine.types';
import { readNote } from './order-note';
import type { interfacesSchema, Resource, VmConfig, VmSnapshot, VmStatus } from './proxmox-schemas';

function powerOf({ lock, status, qmpstatus }: VmStatus): PowerState {
  if (lock === 'rollback') return 'rebooting';
  if (status === 'stopped') return 'off';
  return status === 'running' && qmpstatus === 'running' ? 'on' : 'unknown';
}

/**
 * Networks that cannot be reached from outside the guest, such as the bridges of its containers: loopback, link-local,
 * private and shared ones. Their addresses are left out, although a guest reports them.
 */
const inner = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const)
  inner.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  inner.addSubnet(network, prefix, 'ipv6');

const isPublic = (address: string): boolean => {
  const version = address.includes('%') ? 0 : isIP(address);
  return version !== 0 && !inner.check(address, version === 4 ? 'ipv4' : 'ipv6');
};

/** More than we give to any machine: a guest may report anything, and all of it would be stored. */
const addressesMax = 64;

export function addressesOf(interfaces: z.infer<typeof interfacesSchema>): string[] {
  const said = interfaces.result.flatMap((card) => card['ip-addresses'] ?? []).map((entry) => entry['ip-address']);
  return [...new Set(said.filter(isPublic))].slice(0, addressesMax);
}

interface Looked {
  resource: Resource;
  status: VmStatus;
  /** Null where nobody asked for it. */
  config: VmConfig | null;
  addresses: readonly string[];
}

export function machineOf({ resource, status, config, addresses }: Looked): Machine {
  const note = readNote(config?.description);
  return {
    ...{
      id: String(resource.vmid),
      name: status.name ?? resource.name ?? '',
      vendorStatus: status.status,
      powerState: powerOf(status),
    },
    addresses,
    isLocked: status.lock !== undefined,
    // A template's disks are the base of others: it can be neither rolled back nor started.
    isRebuildProtected: resource.template === 1,
    isDeleteProtected: resource.template === 1 || config?.protection === 1,
    ...{ spec: note?.spec ?? null, zone: resource.node, image: note?.image ?? null },
    architecture: config === null ? null : config.arch === 'aarch64' ? 'arm' : 'x86',
    diskGb: status.maxdisk === undefined ? null : Math.round(status.maxdisk / 1e7) / 100,
  };
}

/** `newerIds`: the snapshots that are in the way of a rollback. */
export const snapshotOf = (
  { name, description, snaptime, snapstate }: VmSnapshot,
  newerIds: readonly string[],
): MachineSnapshot => ({
  ...{ id: name, description: (description ?? '').trimEnd(), createdAt: new Date((snaptime ?? 0) * 1_000) },
  status: snapstate === undefined ? 'available' : snapstate === 'prepare' ? 'creating' : 'unavailable',
  ...{ sizeGb: null, architecture: null, diskGb: null, newerIds, isDeleteProtected: false },
});

/** All that come after it, by the chain of parents. */
export function descendantsOf(name: string, all: readonly VmSnapshot[]): string[] {
  const found = new Set<string>();
  for (let last = -1; last !== found.size; ) {
    last = found.size;
    for (const { name: child, parent } of all) if (parent === name || found.has(parent ?? '')) found.add(child);
  }
  return [...found];
}

/** Storages that can only go back to the newest snapshot. */
const newestOnly = new Set(['zfspool', 'zfs', 'lvm']);
const diskKey = /^(?:scsi|virtio|sata|ide)\d+$/;

/** Names of the storages that the VM's disks lie on. */
export const storagesOf = (config: VmConfig): string[] =>
  Object.entries(config).flatMap(([key, value]) =>
    diskKey.test(key) && typeof value === 'string' ? [value.split(':')[0] ?? ''] : [],
  );

export const keepsNewestOnly = (
  storages: readonly string[],
  types: ReadonlyArray<{ storage: string; type: string }>,
): boolean => types.some(({ storage, type }) => storages.includes(storage) && newestOnly.has(type));
