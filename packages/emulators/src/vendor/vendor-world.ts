import type { Clock } from '../protocol/clock';
import type { LedgerFile } from '../protocol/ledger';
import type { StateFile } from '../protocol/state-file';
import type { PackageContent } from './package-content';
import { settleJobs } from './settle-jobs';
import type { Item, Job, Package, VendorState } from './vendor-state';

/** An accepted change, for the ledger. */
export interface Taken {
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
  /** Saves what was changed, together with the job that was accepted: first the state, then the ledger. */
  save(taken?: Taken): void;
  /** Ends everything that is over by now. */
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

/** Starts a job on one timeline. Its effect comes at its end. */
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
