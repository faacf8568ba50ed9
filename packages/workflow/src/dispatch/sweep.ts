import { faultpoint } from '@drydock/process';
import type { Database } from '@drydock/service/database';
import { context, ROOT_CONTEXT } from '@opentelemetry/api';
import { enginePoints, type Log } from '../definition/definition';
import { messageOf } from '../definition/step-error';
import { runDueSchedules } from '../store/schedules';
import { cancelUnclaimed, type OnFailed } from '../store/start-workflow';
import { inTraceOf, reportUnfinished } from '../store/telemetry';
import { type JobQueue, probeJob, type QueueKind } from './queue';
import type { Slots } from './slots';
import {
  countUnfinished,
  type DueWorkflow,
  enqueueFailed,
  firstOrg,
  lookForWork,
  overdueStarts,
  takeDueWorkflows,
} from './sweep.store';

export interface RelayOptions<Tx> {
  database: Database<Tx>;
  queues: readonly SweptQueue[];
  log: Log;
  leaseSeconds: number;
  onFailed: OnFailed<Tx>;
  /** Reports the number of unfinished workflows as metrics, if a report is due. */
  report(): Promise<void>;
  changed(workflowId: string): void;
}

export interface SweptQueue {
  kind: QueueKind;
  queue: JobQueue;
  slots: Slots;
  /**
   * The number of waiting jobs up to which the sweep fills the queue. It is small, so that the sweep and not the queue
   * decides the order.
   */
  waitingMax: number;
  /** Seconds since this worker last received a job from the queue. */
  silentSeconds(): number;
  /** Whether the last sweep filled the queue, so that more work may be due. */
  hasBacklog: boolean;
  /**
   * The organisation at which the next query begins. Each process has its own value, which may be lost without harm.
   */
  fromOrg: string;
}

/**
 * The seconds without a job after which a probe checks the queue. They are fewer than `unreadyAfterSeconds`, so that a
 * working queue delivers the probe before the worker counts as unready.
 */
const probeAfterSeconds = 20;

/**
 * Handles everything that is due: schedules, workflows that no worker has claimed by their `start_by`, and workflows to
 * enqueue. Each part fails separately. While no schedule is due and no workflow is queued or running, most sweeps take
 * one statement.
 */
export async function sweep<Tx>(options: RelayOptions<Tx>): Promise<void> {
  const { database, log, changed } = options;
  const pending = { schedules: false, workflows: false };
  await isolated(log, 'look', async () => void Object.assign(pending, await lookForWork(database.sql())));
  await isolated(log, 'schedules', async () => {
    const started = pending.schedules ? await runDueSchedules(database, log) : [];
    pending.workflows ||= started.length > 0;
    for (const id of started) changed(id);
  });
  await isolated(log, 'start_by', async () => {
    if (!pending.workflows) return;
    for (const id of await overdueStarts(database.sql())) {
      await isolated(log, 'start_by', async () => {
        if (await cancelUnclaimed(database, id, options.onFailed)) changed(id);
      });
    }
  });
  await isolated(log, 'report', () => options.report());
  for (const own of options.queues) {
    own.hasBacklog = false;
    await isolated(log, 'dispatch', async () => {
      own.hasBacklog = await enqueueDue(options, own, pending.workflows);
    });
  }
}

/** The pause between two reports. Metrics are read about every 15 s, so a report in each sweep would be too often. */
const reportEveryMs = 10_000;

export interface ReportOptions {
  database: Pick<Database<never>, 'sql'>;
  /** The kinds of all workflows that this worker can run. */
  kinds: readonly string[];
  /** Whether this worker reports for all workers of its service. */
  isReporter(): Promise<boolean>;
}

/** Makes the part of a sweep that reports the numbers of unfinished workflows as metrics. */
export function createReport({ database, kinds, isReporter }: ReportOptions): () => Promise<void> {
  let reportedAtMs = -reportEveryMs;
  return async () => {
    if (performance.now() - reportedAtMs < reportEveryMs) return;
    reportedAtMs = performance.now();
    reportUnfinished((await isReporter()) ? await countUnfinished(database.sql(), kinds) : null);
  };
}

/** The most queries of one sweep for each queue. The next sweep continues where the last of these queries ended. */
const looksMax = 10;

async function enqueueDue<Tx>(
  { database, log, leaseSeconds }: RelayOptions<Tx>,
  own: SweptQueue,
  hasWork: boolean,
): Promise<boolean> {
  const { kind, queue, slots, waitingMax, silentSeconds } = own;
  if (!hasWork && silentSeconds() <= probeAfterSeconds) return false;
  const waiting = await queue.waiting();
  if (silentSeconds() > probeAfterSeconds && waiting === 0) await queue.enqueue('probe', probeJob);
  let room = waitingMax - waiting;
  // Counts the rounds through all organisations. A sweep that does not begin at the first organisation first completes
  // a partial round, which is not counted. In the second round the organisations share the room that the first round
  // has left in the queue.
  let rounds = own.fromOrg === firstOrg ? 0 : -1;
  for (let looks = 0; hasWork && room > 0 && looks < looksMax; looks += 1) {
    const { due, nextOrg } = await takeDueWorkflows(database.sql(), {
      kind,
      limit: room,
      enqueueAgainSeconds: 2 * leaseSeconds,
      queueEmpty: waiting === 0,
      fullOrgs: slots.full(),
      fromOrg: own.fromOrg,
      hadTurns: rounds === 1,
    });
    own.fromOrg = nextOrg ?? firstOrg;
    await Promise.all(due.map((row) => enqueueOne({ database, queue, log }, row)));
    room -= due.length;
    if (nextOrg === null) rounds += 1;
    if (rounds === 2 || (rounds === 1 && looks === 0)) break;
  }
  return room <= 0;
}

async function enqueueOne<Tx>(
  { database, queue, log }: Pick<RelayOptions<Tx>, 'database' | 'log'> & Pick<SweptQueue, 'queue'>,
  row: DueWorkflow,
): Promise<void> {
  try {
    faultpoint(enginePoints.dispatchBefore);
    const job = {
      workflowId: row.id,
      orgId: row.org_id,
      ...(row.traceparent === null ? {} : { traceparent: row.traceparent }),
    };
    await inTraceOf(row.traceparent, () => queue.enqueue(row.kind, job));
    faultpoint(enginePoints.dispatchAfter);
  } catch (error) {
    log.warn({ workflow_id: row.id, internal: messageOf(error) }, 'enqueue failed');
    await enqueueFailed(database.sql(), row.id).catch(() => undefined);
  }
}

async function isolated(log: Log, part: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    log.warn({ part, internal: messageOf(error) }, 'part of a sweep failed');
  }
}

export interface SweepLoop {
  /** Sweeps at once, or as soon as the running sweep is over. */
  wake(): void;
  wakeIn(ms: number): void;
  stop(): Promise<void>;
}

/** Runs `work` with pauses of `everyMs`, or sooner when woken, but never twice at a time. `work` must not reject. */
export function loopSweeps(everyMs: number, work: () => Promise<void>): SweepLoop {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let woken = false;
  let stopped = false;
  const once = async (): Promise<void> => {
    woken = false;
    await work();
    running = undefined;
    if (!stopped) timer = setTimeout(turn, woken ? 0 : everyMs);
  };
  const turn = (): void => {
    clearTimeout(timer);
    // A sweep belongs to no trace. A request may wake the sweep, but most of the due work belongs to other requests.
    running ??= context.with(ROOT_CONTEXT, once);
  };
  const wake = (): void => {
    if (stopped) return;
    if (running === undefined) turn();
    else woken = true;
  };
  turn();
  return {
    wake,
    wakeIn: (ms) => {
      if (ms < everyMs) setTimeout(wake, Math.max(0, ms)).unref();
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
