import type { Database } from '@drydock/database/sql';
import { faultpoint } from '@drydock/faults/faultpoint';
import { cancelUnclaimed, type SettleFailed } from './cancel-unclaimed';
import { nobody } from './doorbell';
import { enginePoints } from './fault-points';
import type { Log } from './log';
import { countWaitingForStaff } from './metrics';
import type { DoorbellQueue } from './queue';
import { runDueSchedules } from './run-schedules';
import { messageOf } from './step-error';
import { countNeedingAttention, type DueWorkflow, overdueStarts, ringFailed, takeDueWorkflows } from './sweep.store';
import { inTraceOf } from './trace';

export interface RelayOptions<Tx> {
  database: Database<Tx>;
  queue: DoorbellQueue;
  log: Log;
  leaseSeconds: number;
  /** Waiting doorbells that the sweep keeps in the queue, so that the order stays its own to decide. */
  waitingMax: number;
  settleFailed: SettleFailed<Tx>;
  /** Seconds since a job was last delivered here. */
  silentSeconds(): number;
  changed(workflowId: string): void;
}

/** Seconds without a job after which the queue is tried with a ring for nobody. */
const silenceMaxSeconds = 5;

/**
 * One look at everything that is due: schedules, starts that came too late, workflows to ring for. Each part fails by itself.
 * Resolves to true when there was more than fits into the queue for now.
 */
export async function sweep<Tx>(options: RelayOptions<Tx>): Promise<boolean> {
  const { database, log, changed } = options;
  await apart(log, 'schedules', async () => {
    for (const id of await runDueSchedules(database, log)) changed(id);
  });
  await apart(log, 'start_by', async () => {
    for (const id of await overdueStarts(database.sql())) {
      await apart(log, 'start_by', async () => {
        if (await cancelUnclaimed(database, id, options.settleFailed)) changed(id);
      });
    }
  });
  await apart(log, 'needs_attention', async () => countWaitingForStaff(await countNeedingAttention(database.sql())));
  let more = false;
  await apart(log, 'dispatch', async () => {
    more = await ringDue(options);
  });
  return more;
}

async function ringDue<Tx>({ database, queue, log, leaseSeconds, waitingMax, silentSeconds }: RelayOptions<Tx>): Promise<boolean> {
  const waiting = await queue.waiting();
  if (silentSeconds() > silenceMaxSeconds && waiting === 0) await queue.ring({ workflowId: nobody }, `${process.pid}-${Date.now()}`);
  const room = waitingMax - waiting;
  if (room <= 0) return true;
  const due = await takeDueWorkflows(database.sql(), { limit: room, ringAgainSeconds: 2 * leaseSeconds, queueEmpty: waiting === 0 });
  await Promise.all(due.map((row) => ringOne({ database, queue, log }, row)));
  return due.length === room;
}

async function ringOne<Tx>(
  { database, queue, log }: Pick<RelayOptions<Tx>, 'database' | 'queue' | 'log'>,
  row: DueWorkflow,
): Promise<void> {
  try {
    faultpoint(enginePoints.dispatchBefore);
    const bell = { workflowId: row.id, ...(row.traceparent === null ? {} : { traceparent: row.traceparent }) };
    await inTraceOf(row.traceparent, () => queue.ring(bell, row.dispatch_number));
    faultpoint(enginePoints.dispatchAfter);
  } catch (error) {
    log.warn({ workflow_id: row.id, internal: messageOf(error) }, 'ring failed');
    await ringFailed(database.sql(), row.id).catch(() => undefined);
  }
}

async function apart(log: Log, part: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    log.warn({ part, internal: messageOf(error) }, 'part of a sweep failed');
  }
}
