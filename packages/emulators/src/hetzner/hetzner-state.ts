import { z } from 'zod';
import { clockAnchorSchema } from '../protocol/clock';
import { diskSchema } from '../protocol/disk';
import { ledgerEntrySchema } from '../protocol/state-file';

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

/** All times are milliseconds since 1970 in the emulator's time. */
const serverSchema = z.strictObject({
  id: z.int(),
  project: z.string(),
  name: z.string(),
  serverType: z.string(),
  location: z.string(),
  imageId: z.int().nullable(),
  status: z.enum(serverStatuses),
  /** True if a lock that no listing shows holds the server. */
  isHiddenLocked: z.boolean(),
  isProtected: z.boolean(),
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
  /** The content that the disk gets when the action succeeds. It is fixed at the start of the action. */
  disk: diskSchema.nullable(),
  /** The machine's status before the action. A failed action restores it. */
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

export type HetznerState = z.infer<typeof hetznerStateSchema>;
export type Server = z.infer<typeof serverSchema>;
export type Image = z.infer<typeof imageSchema>;
export type Action = z.infer<typeof actionSchema>;
