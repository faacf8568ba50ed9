import { z } from 'zod';
import { clockAnchorSchema } from '../protocol/clock';
import { diskSchema } from '../protocol/disk';
import { ledgerEntrySchema } from '../protocol/state-file';

const snapshotSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  /** Seconds since 1970, the unit of Proxmox. */
  snaptime: z.int(),
  parent: z.string().nullable(),
  /** `prepare` or `delete` while the snapshot is incomplete, otherwise null. */
  snapstate: z.string().nullable(),
  disk: diskSchema,
});

const vmSchema = z.strictObject({
  vmid: z.int(),
  /** The owner, or null for a template, which every account may clone. */
  account: z.string().nullable(),
  node: z.string(),
  name: z.string(),
  isTemplate: z.boolean(),
  status: z.enum(['running', 'stopped']),
  /** QEMU's state of a running VM, such as `running` or `paused`. */
  qmpstatus: z.string(),
  lock: z.string().nullable(),
  /** Staff set this flag. Neither the VM nor its disks can then be removed. */
  isProtected: z.boolean().default(false),
  description: z.string(),
  cores: z.int(),
  memoryMb: z.int(),
  diskGb: z.int(),
  storage: z.string(),
  /** The addresses that the guest agent reports, or null without an agent. */
  addresses: z.array(z.string()).nullable(),
  /** The snapshot from which the present state derives. */
  parent: z.string().nullable(),
  snapshots: z.array(snapshotSchema),
  disk: diskSchema,
});

const taskSchema = z.strictObject({
  upid: z.string(),
  node: z.string(),
  type: z.string(),
  /** The VM under which the task is listed. A clone is listed under its source. */
  id: z.string(),
  /** The account that started the task, or null for staff. Every account sees the tasks of staff. */
  account: z.string().nullable(),
  pid: z.int(),
  pstart: z.int(),
  /** Milliseconds since 1970 in the emulator's time. */
  started: z.number(),
  endsAt: z.number(),
  isOver: z.boolean(),
  /** The result of the task: `OK` or an error. */
  exitstatus: z.string(),
  /** The VM that the task changes. The fields below are its arguments. */
  vmid: z.int(),
  snapname: z.string().nullable(),
  starts: z.boolean(),
});

export const proxmoxStateSchema = z.strictObject({
  clock: clockAnchorSchema,
  lastPid: z.int(),
  lastEntry: ledgerEntrySchema.nullable(),
  vms: z.array(vmSchema),
  tasks: z.array(taskSchema),
});

export type ProxmoxState = z.infer<typeof proxmoxStateSchema>;
export type Vm = z.infer<typeof vmSchema>;
export type Snapshot = z.infer<typeof snapshotSchema>;
export type Task = z.infer<typeof taskSchema>;

export const nodeNames = ['pve1', 'pve2'];

/**
 * The storages of the cluster. The API does not say which of them can only roll back to the newest snapshot, so a
 * driver must know it.
 */
export const storages = [
  { storage: 'local', type: 'dir', content: 'iso,vztmpl,backup' },
  { storage: 'local-lvm', type: 'lvmthin', content: 'images,rootdir' },
  { storage: 'local-zfs', type: 'zfspool', content: 'images,rootdir' },
];

const template = (vmid: number, name: string, storage: string): Vm => ({
  ...{
    vmid,
    account: null,
    node: 'pve1',
    name,
    isTemplate: true,
    status: 'stopped',
    qmpstatus: 'stopped',
    lock: null,
    isProtected: false,
    description: '',
  },
  ...{ cores: 1, memoryMb: 1_024, diskGb: 10, storage, addresses: null, parent: null, snapshots: [] },
  disk: { '/etc/os-release': `NAME=${name}\n` },
});

export const templates = (): Vm[] => [
  template(9_000, 'debian-12', 'local-lvm'),
  template(9_001, 'debian-12-zfs', 'local-zfs'),
];
