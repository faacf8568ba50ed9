import { createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import type { Machine, MachineOrder, MachineSnapshot, PowerState } from '../compute.types';

/** The schemas parse only fields that are used. Source: the public API viewer and qemu-server of Proxmox VE 8. */
const flag = z.union([z.literal(0), z.literal(1)]);

/** The schema of an answer. Every answer is `{"data": …}`. */
export const dataOf = <T>(schema: z.ZodType<T>) => z.object({ data: schema }).transform(({ data }) => data);

/**
 * A VM in the cluster's list. While its node sends no statistics, the status is `unknown`, and `name` and `template`
 * are missing. The other fields are always right.
 */
export const resourceSchema = z.object({
  vmid: z.int().positive(),
  node: z.string().min(1),
  type: z.string(),
  name: z.string().optional(),
  status: z.string().optional(),
  template: flag.optional(),
  lock: z.string().optional(),
});
export type Resource = z.infer<typeof resourceSchema>;

export const statusSchema = z.object({
  vmid: z.coerce.number().int(),
  name: z.string().optional(),
  status: z.string(),
  qmpstatus: z.string().optional(),
  lock: z.string().optional(),
  maxdisk: z.number().nonnegative().optional(),
});
type VmStatus = z.infer<typeof statusSchema>;

/** A VM's configuration. Each disk is a text `storage:volume,option=value,…` under a key such as scsi0. */
export const configSchema = z.looseObject({
  description: z.string().optional(),
  arch: z.string().optional(),
  template: flag.optional(),
  protection: flag.optional(),
});
type VmConfig = z.infer<typeof configSchema>;

export const snapshotSchema = z.object({
  name: z.string(),
  description: z.string().optional(),
  /** Seconds since 1970. It is missing for `current`, which stands for the VM itself. */
  snaptime: z.int().optional(),
  parent: z.string().optional(),
  /** Set while the snapshot is incomplete. */
  snapstate: z.string().optional(),
});
type VmSnapshot = z.infer<typeof snapshotSchema>;

export const interfacesSchema = z.object({
  result: z.array(
    z.object({ 'ip-addresses': z.array(z.object({ 'ip-address': z.string(), prefix: z.int() })).optional() }),
  ),
});

export const storageSchema = z.object({ storage: z.string(), type: z.string() });

export const upidSchema = z
  .string()
  .regex(/^UPID:[^:\s]+:[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:[^:\s]+:[^:\s]*:[^:\s]+:$/);

export const taskSchema = z.object({
  upid: upidSchema,
  type: z.string(),
  id: z.string(),
  status: z.string().optional(),
});
export type Task = z.infer<typeof taskSchema>;

export const taskStatusSchema = taskSchema.extend({
  status: z.enum(['running', 'stopped']),
  exitstatus: z.string().optional(),
});

export const errorSchema = z.object({
  message: z.string().optional(),
  errors: z.record(z.string(), z.unknown()).nullish(),
});

function powerOf({ lock, status, qmpstatus }: VmStatus): PowerState {
  if (lock === 'rollback') return 'rebooting';
  if (status === 'stopped') return 'off';
  return status === 'running' && qmpstatus === 'running' ? 'on' : 'unknown';
}

/**
 * Networks that are not on the public Internet: loopback, link-local, private and shared networks. A guest also reports
 * its addresses in these networks, for example on the bridges of its containers. Such addresses are not shown.
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

/**
 * The most addresses that are stored of a machine. A machine needs fewer, but the list comes from the guest, which may
 * report any number.
 */
const addressesMax = 64;

export function addressesOf(interfaces: z.infer<typeof interfacesSchema>): string[] {
  const said = interfaces.result.flatMap((card) => card['ip-addresses'] ?? []).map((entry) => entry['ip-address']);
  return [...new Set(said.filter(isPublic))].slice(0, addressesMax);
}

interface ReadVm {
  resource: Resource;
  status: VmStatus;
  /** The configuration; null if it was not read. */
  config: VmConfig | null;
  addresses: readonly string[];
}

export function machineOf({ resource, status, config, addresses }: ReadVm): Machine {
  const note = readNote(config?.description);
  const isTemplate = resource.template === 1 || config?.template === 1;
  return {
    ...{
      id: String(resource.vmid),
      name: status.name ?? resource.name ?? '',
      vendorStatus: status.status,
      powerState: powerOf(status),
    },
    addresses,
    isLocked: status.lock !== undefined,
    // Orders clone their machines from a template. So a template counts as protected from rollback, rebuild and
    // deletion.
    isRebuildProtected: isTemplate,
    isDeleteProtected: isTemplate || config?.protection === 1,
    ...{ spec: note?.spec ?? null, zone: resource.node, image: note?.image ?? null },
    architecture: config === null ? null : config.arch === 'aarch64' ? 'arm' : 'x86',
    diskGb: status.maxdisk === undefined ? null : Math.round(status.maxdisk / 1e7) / 100,
  };
}

/** `newerIds` are the snapshots that prevent a rollback to this snapshot. */
export const snapshotOf = (
  { name, description, snaptime, snapstate }: VmSnapshot,
  newerIds: readonly string[],
): MachineSnapshot => ({
  ...{ id: name, description: (description ?? '').trimEnd(), createdAt: new Date((snaptime ?? 0) * 1_000) },
  status: snapstate === undefined ? 'available' : snapstate === 'prepare' ? 'creating' : 'unavailable',
  ...{ sizeGb: null, architecture: null, diskGb: null, newerIds, isDeleteProtected: false },
});

/** The snapshots that descend from `name`. Each snapshot names its parent. */
export function descendantsOf(name: string, all: readonly VmSnapshot[]): string[] {
  const found = new Set<string>();
  for (let last = -1; last !== found.size; ) {
    last = found.size;
    for (const { name: child, parent } of all) if (parent === name || found.has(parent ?? '')) found.add(child);
  }
  return [...found];
}

/** The types of storage that can only return to the newest snapshot. */
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

const noteSchema = z.object({ spec: z.string(), image: z.string(), labels: z.record(z.string(), z.string()) });
const noteStart = 'drydock ';

/**
 * The text that stores an order with its VM. The text is one line of the VM's description, because a VM has no other
 * field for an order.
 */
export const noteOf = ({ spec, image, labels }: MachineOrder): string =>
  `${noteStart}${JSON.stringify({ spec, image, labels })}`;

/**
 * The order in a VM's description. Null if Drydock did not order the VM, or if somebody has rewritten the description.
 */
function readNote(description: string | undefined): z.infer<typeof noteSchema> | null {
  const line = (description ?? '').split('\n').find((candidate) => candidate.startsWith(noteStart));
  if (line === undefined) return null;
  try {
    return noteSchema.safeParse(JSON.parse(line.slice(noteStart.length))).data ?? null;
  } catch {
    return null;
  }
}

const [lowest, highest] = [100_000, 999_999_999];

/**
 * The number of an order's VM is derived from its name. So the cluster itself refuses a second VM for the same order,
 * and simultaneous orders need not agree on the next free number. Among a hundred VMs, one order in ten million meets a
 * number that is taken.
 */
export const vmidOf = (name: string): number =>
  lowest + (createHash('sha256').update(name).digest().readUInt32BE(0) % (highest - lowest));

/**
 * The name of a snapshot. If the answer to the request is lost, the snapshot is found by this name. The name may have
 * at most 40 characters, so it contains the workflow's id without hyphens.
 */
export const snapshotNameOf = (reference: string): string => `drydock-${reference.replaceAll('-', '')}`;
