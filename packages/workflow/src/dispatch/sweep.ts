import { faultpoint } from '@drydock/process/faultpoint';
import type { Database } from '@drydock/service/database/sql';
import { enginePoints, type Log } from '../definition/definition';
import { messageOf } from '../definition/step-error';
import { runDueSchedules } from '../store/schedules';
import { cancelUnclaimed, type OnFailed } from '../store/start-workflow';
import { inTraceOf, reportWaitingForStaff } from '../store/telemetry';
import { type JobQueue, probeJob, type QueueKind } from './queue';
import type { Slots } from './slots';
import { countNeedingAttention, type DueWorkflow, enqueueFailed, overdueStarts, takeDueWorkflows } from './sweep.store';

export interface RelayOptions<Tx> {
  database: Database<Tx>;
  queues: readonly SweptQueue[];
  log: Log;
  leaseSeconds: number;
  onFailed: OnFailed<Tx>;
  /** The kinds of all workflows that this worker knows. */
  kinds: readonly string[];
  /** Whether this worker reports for its whole service. */
  isReporter(): Promise<boolean>;
  changed(workflowId: string): void;
}

/** One kind as the sweep sees it. */
export interface SweptQueue {
  kind: QueueKind;
  queue: JobQueue;
  slots: Slots;
  /** Waiting jobs that the sweep keeps in the queue, so that the order stays its own to decide. */
  waitingMax: number;
  /** Seconds since a job was last delivered here. */
  silentSeconds(): number;
  /** The last sweep had more than fitted into the queue. */
  hasBacklog: boolean;
}

/** Seconds without a job after which the queue is tried with a probe. */
const silenceMaxSeconds = 5;

/** One look at everything that is due: schedules, starts that came too late, workflows to enqueue. Each part fails by itself. */
export async function sweep<Tx>(options: RelayOptions<Tx>): Promise<void> {
  const { database, log, changed } = options;
  await isolated(log, 'schedules', async () => {
    for (const id of await runDueSchedules(database, log)) changed(id);
  });
  await isolated(log, 'start_by', async () => {
    for (const id of await overdueStarts(database.sql())) {
      await isolated(log, 'start_by', async () => {
        if (await cancelUnclaimed(database, id, options.onFailed)) changed(id);
      });
    }
  });
  await isolated(log, 'needs_attention', async () => {
    const isReporter = await options.isReporter();
    reportWaitingForStaff(isReporter ? await countNeedingAttention(database.sql(), options.kinds) : null);
  });
  for (const own of options.queues) {
    own.hasBacklog = false;
    await isolated(log, 'dispatch', async () => {
      own.hasBacklog = await enqueueDue(options, own);
    });
  }
}

async function enqueueDue<Tx>(
  { database, log, leaseSeconds }: RelayOptions<Tx>,
  { kind, queue, slots, waitingMax, silentSeconds }: SweptQueue,
): Promise<boolean> {
  const waiting = await queue.waiting();
  if (silentSeconds() > silenceMaxSeconds && waiting === 0) await queue.enqueue(probeJob, `${process.pid}-${Date.now()}`);
  const room = waitingMax - waiting;
  if (room <= 0) return true;
  const due = await takeDueWorkflows(database.sql(), {
    kind,
    limit: room,
    enqueueAgainSeconds: 2 * leaseSeconds,
    queueEmpty: waiting === 0,
    fullOrgs: slots.full(),
  });
  await Promise.all(due.map((row) => enqueueOne({ database, queue, log }, row)));
  return due.length === room;
}

async function enqueueOne<Tx>(
  { database, queue, log }: Pick<RelayOptions<Tx>, 'database' | 'log'> & Pick<SweptQueue, 'queue'>,
  row: DueWorkflow,
): Promise<void> {
  try {
    faultpoint(enginePoints.dispatchBefore);
    const job = { workflowId: row.id, orgId: row.org_id, ...(row.traceparent === null ? {} : { traceparent: row.traceparent }) };
    await inTraceOf(row.traceparent, () => queue.enqueue(job, row.dispatch_number));
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
  /** Sweeps as soon as the one under way is over. */
  wake(): void;
  wakeIn(ms: number): void;
  stop(): Promise<void>;
}

/** Runs `work` every `everyMs` and when woken. Never two at a time. `work` must not reject. */
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
    running ??= once();
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
