import { z } from 'zod';
import type { VendorItem, VendorJob, VendorListing } from './vendor-timeline.types';

/** The schemas of the vendor's answers. Unknown fields are ignored. */
export const packagesSchema = z.array(
  z.object({ id: z.int(), name: z.string(), label: z.string().default(''), preview_url: z.url() }),
);

const itemSchema = z.object({
  id: z.string(),
  name: z.string(),
  dead: z.boolean(),
  restorable: z.boolean(),
  running: z.boolean(),
  snapshots: z.array(
    z.object({ restoreAsOf: z.int(), taken: z.iso.datetime(), kind: z.enum(['automatic', 'manual']) }),
  ),
});

export const timelineSchema = z.object({
  available: z.boolean(),
  permitted: z.boolean(),
  pro: z.boolean(),
  attached: z.boolean(),
  can_back_up: z.boolean(),
  has_dead_web: z.boolean(),
  web: itemSchema.nullable(),
  databases: z.array(itemSchema),
  mailboxes: z.array(itemSchema),
});

export const jobsSchema = z.array(
  z.object({
    id: z.string(),
    type: z.enum(['takeSnapshot', 'restore', 'mysqlrestore']),
    status: z.enum(['running', 'finished', 'failed']),
    restoreAsOf: z.int().nullable(),
    target: z.string().nullable(),
  }),
);

export const acceptedSchema = z.object({ result: z.string() });
export const madeSchema = z.object({ result: z.int() });
export const doneSchema = z.object({ result: z.literal(true) });

const toItem = ({ id, name, dead, restorable, running, snapshots }: z.infer<typeof itemSchema>): VendorItem => ({
  id,
  name,
  isDead: dead,
  isRestorable: restorable,
  isRunning: running,
  points: [...snapshots]
    .sort((one, other) => other.restoreAsOf - one.restoreAsOf)
    .map(({ restoreAsOf, taken, kind }) => ({ handle: String(restoreAsOf), takenAt: new Date(taken), kind })),
});

export const toListing = ({ web, databases, mailboxes, ...flags }: z.infer<typeof timelineSchema>): VendorListing => ({
  isAvailable: flags.available,
  isPermitted: flags.permitted,
  isPro: flags.pro,
  isAttached: flags.attached,
  canBackUp: flags.can_back_up,
  hasDeadWeb: flags.has_dead_web,
  web: web === null ? null : toItem(web),
  databases: databases.map(toItem),
  mailboxes: mailboxes.map(toItem),
});

/** Oldest first. A job that is over stays over, whatever an older report of it says. */
export function toJobs(reported: z.infer<typeof jobsSchema>): VendorJob[] {
  const jobs = new Map<string, VendorJob>();
  for (const { id, type, status, restoreAsOf, target } of reported) {
    const before = jobs.get(id);
    const isOver = before !== undefined && before.status !== 'running';
    jobs.set(id, {
      id,
      kind: type === 'takeSnapshot' ? 'snapshot' : 'restore',
      status: isOver ? before.status : status,
      handle: restoreAsOf === null ? null : String(restoreAsOf),
      isBeside: target !== null,
    });
  }
  return [...jobs.values()];
}
