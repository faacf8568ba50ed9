import { z } from 'zod';
import { clockAnchorSchema } from '../protocol/clock';
import { diskSchema } from '../protocol/disk';
import { ledgerEntrySchema } from '../protocol/ledger';

const snapshotSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  /** Seconds since 1970, as the provider counts. */
  snaptime: z.int(),
  parent: z.string().nullable(),
  /** `prepare` or `delete` while it is incomplete. */
  snapstate: z.string().nullable(),
  disk: diskSchema,
});

const vmSchema = z.strictObject({
  vmid: z.int(),
  /** Null: a template, which everybody may clone. */
  account: z.string().nullable(),
  node: z.string(),
  name: z.string(),
  isTemplate: z.boolean(),
  status: z.enum(['running', 'stopped']),
  /** QEMU's own state while it runs, such as `running` or `paused`. */
  qmpstatus: z.string(),
  lock: z.string().nullable(),
  /** Staff's flag: neither it nor a disk of it is removed. */
  isProtected: z.boolean().default(false),
  description: z.string(),
  cores: z.int(),
  memoryMb: z.int(),
  diskGb: z.int(),
  storage: z.string(),
  /** As the guest agent tells them; null without an agent. */
  addresses: z.array(z.string()).nullable(),
  /** The snapshot that the present state descends from. */
  parent: z.string().nullable(),
  snapshots: z.array(snapshotSchema),
  disk: diskSchema,
});

const taskSchema = z.strictObject({
  upid: z.string(),
  node: z.string(),
  type: z.string(),
  /** The VM that the task is filed under: of a clone the one that is cloned. */
  id: z.string(),
  /** Null: staff's, by hand; every account sees those too. */
  account: z.string().nullable(),
  pid: z.int(),
  pstart: z.int(),
  /** Milliseconds since 1970 in the emulator's time. */
  started: z.number(),
  endsAt: z.number(),
  isOver: z.boolean(),
  /** How it ends: `OK`, or why not. */
  exitstatus: z.string(),
  /** The VM that it works on, and with what. */
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
