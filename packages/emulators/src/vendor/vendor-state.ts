import { z } from 'zod';
import { clockAnchorSchema } from '../protocol/clock';
import { ledgerEntrySchema } from '../protocol/state-file';

export const scopeSchema = z.enum(['web', 'database', 'mailbox']);
export type Scope = z.infer<typeof scopeSchema>;

/** All times except `restoreAsOf` are milliseconds since 1970 in the emulator's time. */
const pointSchema = z.strictObject({
  /** Seconds since 1970. The value identifies the point in its timeline. */
  restoreAsOf: z.int(),
  kind: z.enum(['automatic', 'manual']),
});

const itemSchema = z.strictObject({
  scope: scopeSchema,
  /** '' for the website. */
  id: z.string(),
  name: z.string(),
  isDead: z.boolean(),
  isRestorable: z.boolean(),
  points: z.array(pointSchema),
});
export type Item = z.infer<typeof itemSchema>;

const jobSchema = z.strictObject({
  id: z.string(),
  scope: scopeSchema,
  itemId: z.string(),
  type: z.enum(['takeSnapshot', 'restore', 'mysqlrestore']),
  status: z.enum(['running', 'finished', 'failed']),
  restoreAsOf: z.int().nullable(),
  /** The mailbox that is created beside the original, or null to overwrite the original. */
  target: z.string().nullable(),
  startedAt: z.number(),
  endsAt: z.number(),
  willFail: z.boolean(),
});
export type Job = z.infer<typeof jobSchema>;

export const packageFlagsSchema = z.strictObject({
  available: z.boolean(),
  permitted: z.boolean(),
  pro: z.boolean(),
  attached: z.boolean(),
  /** If set, every snapshot is refused. */
  isFull: z.boolean(),
});

const packageSchema = z.strictObject({
  id: z.int(),
  account: z.string(),
  domain: z.string(),
  label: z.string(),
  createdAt: z.number(),
  flags: packageFlagsSchema,
  /** The website, if there is one, is the first item. */
  items: z.array(itemSchema),
  jobs: z.array(jobSchema),
  failsNextJob: z.boolean(),
});
export type Package = z.infer<typeof packageSchema>;

export const vendorStateSchema = z.strictObject({
  clock: clockAnchorSchema,
  lastId: z.int(),
  lastEntry: ledgerEntrySchema.nullable(),
  packages: z.array(packageSchema),
});
export type VendorState = z.infer<typeof vendorStateSchema>;

export const newItem = (scope: Scope, id: string, name: string): Item => ({
  scope,
  id,
  name,
  isDead: false,
  isRestorable: true,
  points: [],
});

export const isRunning = ({ status }: Job): boolean => status === 'running';
export const isOf =
  ({ scope, id }: Pick<Item, 'scope' | 'id'>) =>
  (job: Job): boolean =>
    job.scope === scope && job.itemId === id;
