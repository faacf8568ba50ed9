import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { Call, PathValues, Reply } from '../protocol/call';
import { type Clock, clockAnchorSchema } from '../protocol/clock';
import { type LedgerFile, ledgerEntrySchema, type StateFile } from '../protocol/state-file';

export const scopeSchema = z.enum(['web', 'database', 'mailbox']);
export type Scope = z.infer<typeof scopeSchema>;

/** In this file, all times except `restoreAsOf` are milliseconds since 1970 in the emulator's time. */
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
  /** The other mailbox that a restore writes to. With null it overwrites the original. */
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
  /** If true, every request for a snapshot is refused. */
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
type VendorState = z.infer<typeof vendorStateSchema>;

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

/** Text by path: pages of a document root, tables as JSON, or messages. */
export type Files = Readonly<Record<string, string>>;
type Which = Pick<Item, 'scope' | 'id'>;

/**
 * The content of packages as files: `<root>/<package>/live/…`, and for each restore point
 * `<root>/<package>/points/…/<restoreAsOf>`.
 */
interface PackageContent {
  read(packageId: number, item: Which): Files;
  /** Replaces all content of the item. */
  write(packageId: number, item: Which, files: Files): void;
  /** Copies the live content to a restore point. A repeated call for the same point replaces the copy. */
  keepPoint(packageId: number, item: Which, restoreAsOf: number): void;
  /** Makes a restore point's content live, in the same item or in another item. */
  bringBack(packageId: number, item: Which, restoreAsOf: number, into: Which): void;
  /** Returns a file of the document root, or null if it does not exist. */
  readPage(packageId: number, file: string): Buffer | null;
  removeItem(packageId: number, item: Which): void;
  removePackage(packageId: number): void;
}

const folderOfScope = { web: 'web', database: 'databases', mailbox: 'mailboxes' } as const;
const placeOf = ({ scope, id }: Which): string =>
  scope === 'web' ? folderOfScope.web : path.join(folderOfScope[scope], id);

/** Resolves a path. @throws Error when it leads out of `folder` */
function inside(folder: string, file: string): string {
  const full = path.resolve(folder, file);
  if (full !== folder && !full.startsWith(`${folder}${path.sep}`)) throw new Error(`${file} leads out of its folder`);
  return full;
}

/**
 * Replaces a folder: fills a new folder beside the old folder, and then renames both. A repeated call repairs a crash
 * between the renames.
 */
function replaceFolder(folder: string, fill: (fresh: string) => void): void {
  const [fresh, old] = [`${folder}.fresh`, `${folder}.old`];
  for (const leftover of [fresh, old]) rmSync(leftover, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  fill(fresh);
  if (existsSync(folder)) renameSync(folder, old);
  renameSync(fresh, folder);
  rmSync(old, { recursive: true, force: true });
}

function readFiles(folder: string): Files {
  if (!existsSync(folder)) return {};
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const files = names.filter((name) => statSync(path.join(folder, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]));
}

export function openPackageContent(stateDir: string): PackageContent {
  const root = path.resolve(stateDir, 'packages');
  const live = (packageId: number, item: Which): string =>
    inside(path.join(root, String(packageId), 'live'), placeOf(item));
  const point = (packageId: number, item: Which, at: number): string =>
    path.join(inside(path.join(root, String(packageId), 'points'), placeOf(item)), String(at));
  return {
    read: (packageId, item) => readFiles(live(packageId, item)),
    write: (packageId, item, files) =>
      replaceFolder(live(packageId, item), (fresh) => {
        for (const [name, text] of Object.entries(files)) {
          const file = inside(fresh, name);
          mkdirSync(path.dirname(file), { recursive: true });
          writeFileSync(file, text);
        }
      }),
    keepPoint: (packageId, item, at) =>
      replaceFolder(point(packageId, item, at), (fresh) => {
        if (existsSync(live(packageId, item))) cpSync(live(packageId, item), fresh, { recursive: true });
      }),
    bringBack: (packageId, item, at, into) =>
      replaceFolder(live(packageId, into), (fresh) => cpSync(point(packageId, item, at), fresh, { recursive: true })),
    readPage: (packageId, file) => {
      const page = inside(live(packageId, { scope: 'web', id: '' }), file);
      return existsSync(page) && statSync(page).isFile() ? readFileSync(page) : null;
    },
    removeItem: (packageId, item) => {
      for (const folder of ['live', 'points'])
        rmSync(inside(path.join(root, String(packageId), folder), placeOf(item)), { recursive: true, force: true });
    },
    removePackage: (packageId) => rmSync(path.join(root, String(packageId)), { recursive: true, force: true }),
  };
}

/**
 * Ends all jobs that are due by now, in the order of their ends. Returns whether any job ended. If the emulator crashes
 * before the state is saved, the next call ends the same jobs again, with the same result.
 */
function endDueJobs(world: VendorWorld): boolean {
  const now = world.clock.now();
  const over = world.state.packages.flatMap((found) =>
    found.jobs.filter((job) => isRunning(job) && job.endsAt <= now).map((job) => ({ found, job })),
  );
  for (const { found, job } of over.sort((one, other) => one.job.endsAt - other.job.endsAt)) endJob(world, found, job);
  return over.length > 0;
}

function endJob(world: VendorWorld, found: Package, job: Job): void {
  const item = found.items.find(({ scope, id }) => scope === job.scope && id === job.itemId);
  if (job.willFail || item === undefined) {
    job.status = 'failed';
    return;
  }
  if (job.type === 'takeSnapshot') addPoint(world, found, item, 'manual', job.endsAt);
  else if (job.restoreAsOf !== null)
    world.content.bringBack(found.id, item, job.restoreAsOf, targetOf(found, item, job.target));
  job.status = 'finished';
}

/** Returns the item itself, or the mailbox `target`, which is created if it is missing. */
function targetOf(found: Package, item: Item, target: string | null): Item {
  if (target === null) return item;
  const there = found.items.find(({ scope, name }) => scope === 'mailbox' && name === target);
  if (there !== undefined) return there;
  const made = newItem('mailbox', target, target);
  found.items.push(made);
  return made;
}

/**
 * Creates a restore point from the live content. Two points of an item have times at least a second apart, even if they
 * are created within one second.
 */
export function addPoint(
  world: VendorWorld,
  found: Package,
  item: Item,
  kind: Item['points'][number]['kind'],
  atMs: number,
): number {
  const newest = Math.max(0, ...item.points.map(({ restoreAsOf }) => restoreAsOf));
  const restoreAsOf = Math.max(Math.floor(atMs / 1_000), newest + 1);
  world.content.keepPoint(found.id, item, restoreAsOf);
  item.points.push({ restoreAsOf, kind });
  return restoreAsOf;
}

/** An accepted change, for the ledger. */
interface Taken {
  found: Pick<Package, 'id' | 'account'>;
  op: string;
  jobId: string;
  detail: string;
}

export interface VendorWorld {
  readonly state: VendorState;
  readonly clock: Clock;
  readonly content: PackageContent;
  readonly jobSeconds: number;
  nextId(): number;
  /** Saves the state, and then writes the accepted change, if there is one, to the ledger. */
  save(taken?: Taken): void;
  endDue(): void;
}

interface Parts {
  clock: Clock;
  file: StateFile<VendorState>;
  ledger: LedgerFile;
  content: PackageContent;
  jobSeconds: number;
}

export function openVendorWorld(state: VendorState, { clock, file, ledger, content, jobSeconds }: Parts): VendorWorld {
  const save: VendorWorld['save'] = (taken) => {
    state.clock = clock.anchor;
    if (taken === undefined) return file.write(state);
    const entry = {
      seq: (state.lastEntry?.seq ?? 0) + 1,
      time: new Date(clock.now()).toISOString(),
      project: taken.found.account,
      resource: String(taken.found.id),
      op: taken.op,
      action_id: taken.jobId,
      detail: taken.detail,
      fence: '0' as const,
      workflow_id: null,
      outcome: 'accepted' as const,
    };
    state.lastEntry = entry;
    file.write(state);
    ledger.append(entry);
  };
  const world: VendorWorld = {
    state,
    clock,
    content,
    jobSeconds,
    nextId: () => {
      state.lastId += 1;
      return state.lastId;
    },
    save,
    endDue: () => {
      if (endDueJobs(world)) save();
    },
  };
  return world;
}

/** Starts a job on a timeline. The job takes effect at its end. */
export function startJob(
  world: VendorWorld,
  found: Package,
  item: Item,
  wanted: Pick<Job, 'type' | 'restoreAsOf' | 'target'>,
): Job {
  const startedAt = world.clock.now();
  const job: Job = {
    id: String(world.nextId()),
    scope: item.scope,
    itemId: item.id,
    ...wanted,
    status: 'running',
    startedAt,
    endsAt: startedAt + world.jobSeconds * 1_000,
    willFail: found.failsNextJob,
  };
  found.failsNextJob = false;
  found.jobs.push(job);
  const detail = `${item.scope} ${item.id}${wanted.restoreAsOf === null ? '' : ` as of ${wanted.restoreAsOf}`}`;
  world.save({ found, op: wanted.type, jobId: job.id, detail });
  return job;
}

/** Handles a call of the account to which its key belongs. */
type AccountHandler = (world: VendorWorld, account: string, call: Call, values: PathValues) => Reply;

export interface AccountRoute {
  method: string;
  pattern: string;
  handle: AccountHandler;
}

export const accountAt = (method: string, pattern: string, handle: AccountHandler): AccountRoute => ({
  method,
  pattern,
  handle,
});
