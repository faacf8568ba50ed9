import type { Call, PathValues, Reply } from '../protocol/call';
import type { Clock } from '../protocol/clock';
import type { LedgerFile, StateFile } from '../protocol/state-file';
import type { PackageContent } from './package-content';
import { type Item, isRunning, type Job, newItem, type Package, type VendorState } from './vendor-state';

/**
 * Ends all jobs that are due by now, in order. Returns whether there was any. After a crash it can be repeated with the
 * same result.
 */
function settleJobs(world: VendorWorld): boolean {
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

/** Returns the item, or the mailbox that the restore creates beside it. */
function targetOf(found: Package, item: Item, target: string | null): Item {
  if (target === null) return item;
  const there = found.items.find(({ scope, name }) => scope === 'mailbox' && name === target);
  if (there !== undefined) return there;
  const made = newItem('mailbox', target, target);
  found.items.push(made);
  return made;
}

/**
 * Creates a restore point from the live content. Two points have times at least a second apart, even if they are
 * created within one second.
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

/** An accepted job, for the ledger. */
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
  /** Saves the state, and then writes an accepted job to the ledger. */
  save(taken?: Taken): void;
  /** Ends all jobs that are due by now. */
  settle(): void;
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
    settle: () => {
      if (settleJobs(world)) save();
    },
  };
  return world;
}

/** Starts a job on a timeline. It takes effect at its end. */
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
