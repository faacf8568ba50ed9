import { z } from 'zod';
import { listingBytesMax, type VendorHttp } from './vendor-http';
import { VendorError, type VendorPackage, type VendorTimeline, type VendorTimelineReader } from './vendor-timeline';
import type { VendorItem, VendorItemRef, VendorJob, VendorListing } from './vendor-timeline.types';

/** The schemas in this file describe the vendor's answers. Unknown fields are ignored. */
const packageSchema = z.object({
  id: z.int(),
  name: z.string(),
  label: z.string().default(''),
  preview_url: z.url(),
});

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

const timelineSchema = z.object({
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

const jobsSchema = z.array(
  z.object({
    id: z.string(),
    type: z.enum(['takeSnapshot', 'restore', 'mysqlrestore']),
    status: z.enum(['running', 'finished', 'failed']),
    restoreAsOf: z.int().nullable(),
    target: z.string().nullable(),
  }),
);

const acceptedSchema = z.object({ result: z.string() });
const madeSchema = z.object({ result: z.int() });
const doneSchema = z.object({ result: z.literal(true) });

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

const toListing = ({ web, databases, mailboxes, ...flags }: z.infer<typeof timelineSchema>): VendorListing => ({
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

/**
 * The jobs in the order in which the vendor first lists them, each once. If any entry of a job says that it has ended,
 * the job counts as ended.
 */
function toJobs(reported: z.infer<typeof jobsSchema>): VendorJob[] {
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

const timelinePath = (packageId: string): string => `/package/${encodeURIComponent(packageId)}/web/timelineBackup`;

function itemPath(packageId: string, { scope, id }: VendorItemRef): string {
  return `${timelinePath(packageId)}/${scope === 'web' ? 'web' : `${scope}/${encodeURIComponent(id)}`}`;
}

/** The milliseconds for the listing of all packages, which only workers read. */
const packagesWithinMs = 30_000;

/** The label by which Drydock finds its own packages. */
const labelOf = (owner: string): string => `drydock ${owner}`;

const missingAsNull = (error: unknown): null => {
  if (error instanceof VendorError && error.fault === 'not_found') return null;
  throw error;
};

/** Reads timelines through the reseller API of 20i. */
export function twentyiTimelineReader(http: VendorHttp): VendorTimelineReader {
  return {
    read: (packageId, signal) =>
      http
        .call({
          method: 'GET',
          path: timelinePath(packageId),
          answer: timelineSchema,
          bytesMax: listingBytesMax,
          signal,
        })
        .then(toListing, missingAsNull),
  };
}

export function twentyiTimeline(http: VendorHttp): VendorTimeline {
  const listPackages = (signal?: AbortSignal) =>
    http.call({
      method: 'GET',
      path: '/package',
      answer: z.array(packageSchema),
      bytesMax: listingBytesMax,
      withinMs: packagesWithinMs,
      signal,
    });
  const readPackage = (packageId: string, signal?: AbortSignal) =>
    http
      .call({ method: 'GET', path: `/package/${encodeURIComponent(packageId)}`, answer: packageSchema, signal })
      .catch(missingAsNull);
  const findPackage = async (
    owner: string,
    signal?: AbortSignal,
    knownId: string | null = null,
  ): Promise<VendorPackage | null> => {
    const known = knownId === null ? null : await readPackage(knownId, signal);
    const candidates = known?.label === labelOf(owner) ? [known] : await listPackages(signal);
    const found = candidates.find(({ label }) => label === labelOf(owner));
    return found === undefined ? null : { packageId: String(found.id), url: found.preview_url };
  };
  return {
    ...twentyiTimelineReader(http),
    findPackage,
    listJobs: async (packageId, item, signal) =>
      toJobs(await http.call({ method: 'GET', path: `${itemPath(packageId, item)}/jobs`, answer: jobsSchema, signal })),
    takeSnapshot: async (packageId, item, signal) => {
      await http.call({
        method: 'POST',
        path: `${itemPath(packageId, item)}/takeSnapshot`,
        answer: acceptedSchema,
        signal,
      });
    },
    restore: async (packageId, { item, name, handle, isBeside }, signal) => {
      const body = {
        action: item.scope === 'database' ? 'mysqlrestore' : 'restore',
        restoreAsOf: Number(handle),
        restorePath: '/',
        ...(isBeside ? { target: `temp-${name}` } : {}),
      };
      await http.call({
        method: 'POST',
        path: `${itemPath(packageId, item)}/restoreSnapshot`,
        body,
        answer: acceptedSchema,
        signal,
      });
    },
    ensurePackage: async (owner, domain, signal) => {
      const there = await findPackage(owner, signal);
      if (there !== null) return there;
      const body = { type: 'linux', domain_name: domain, label: labelOf(owner) };
      // A domain has only one package at the vendor, so a call that is repeated after a lost answer is a conflict. The
      // read below then finds the package of the first call. A vendor that is locked or wants fewer calls says nothing
      // about the domain.
      const made = await http
        .call({ method: 'POST', path: '/reseller/*/addWeb', body, answer: madeSchema, signal })
        .then(
          () => true,
          (error: unknown) => {
            if (error instanceof VendorError && error.isConflict) return false;
            throw error;
          },
        );
      const found = await findPackage(owner, signal);
      if (found !== null) return found;
      throw new VendorError(
        made ? 'unknown' : 'refused',
        made ? 'the new package is not listed' : `${domain} has a package of somebody else`,
      );
    },
    removePackage: async (packageId, signal) => {
      const body = { 'delete-id': [Number(packageId)] };
      await http
        .call({ method: 'POST', path: '/reseller/*/deleteWeb', body, answer: doneSchema, signal })
        .catch(missingAsNull);
    },
    probe: (url, signal) => http.probe(url, signal),
  };
}
