import { z } from 'zod';

/** Only fields that are used are parsed. Source: the public API viewer and qemu-server of Proxmox VE 8. */
const flag = z.union([z.literal(0), z.literal(1)]);

/** Every answer is `{"data": …}`. */
export const dataOf = <T>(schema: z.ZodType<T>) => z.object({ data: schema }).transform(({ data }) => data);

export const resourceSchema = z.object({
  vmid: z.int().positive(),
  node: z.string().min(1),
  type: z.string(),
  name: z.string().optional(),
  status: z.string(),
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
export type VmStatus = z.infer<typeof statusSchema>;

/** Disks are `storage:volume,option=value,…` under keys such as scsi0. */
export const configSchema = z.looseObject({
  description: z.string().optional(),
  arch: z.string().optional(),
  template: flag.optional(),
  protection: flag.optional(),
});
export type VmConfig = z.infer<typeof configSchema>;

export const snapshotSchema = z.object({
  name: z.string(),
  description: z.string().optional(),
  /** Seconds since 1970; missing at `current`. */
  snaptime: z.int().optional(),
  parent: z.string().optional(),
  /** Present while it is incomplete. */
  snapstate: z.string().optional(),
});
export type VmSnapshot = z.infer<typeof snapshotSchema>;

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
