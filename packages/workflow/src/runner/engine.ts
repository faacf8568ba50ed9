import type { Database } from '@drydock/service/database';
import type { Log, WorkflowDefinition } from '../definition/definition';
import { messageOf } from '../definition/step-error';
import { queueKinds, type WorkflowJob } from '../dispatch/queue';
import type { Slots } from '../dispatch/slots';
import { createReport, loopSweeps, type SweepLoop, sweep } from '../dispatch/sweep';
import { jobDeclined } from '../dispatch/sweep.store';
import { openWorkerQueue, type WorkerQueue } from '../dispatch/worker';
import type { RunEnd } from '../store/claim.types';
import { raiseFences } from '../store/fences';
import { announceDue, createAnnouncer, type WorkflowListener } from '../store/listener';
import type { OnFailed } from '../store/start-workflow';
import { beginCounting } from '../store/telemetry';
import type { Runner } from './execution';
import { createOutages } from './leave-claim';
import { runWorkflow } from './run-workflow';

export interface EngineOptions<Context, Tx> {
  database: Database<Tx>;
  definitions: readonly WorkflowDefinition<Context, Tx>[];
  /** The drivers, stores and clock that every step is given. */
  context: Context;
  /** The address of the queue in Redis, or in a Postgres that {@link prepareQueue} has prepared. */
  queueUrl: string;
  queueName: string;
  /**
   * Seconds for which a claim lasts unless its worker renews it. A worker renews its claims after each third of this
   * time.
   */
  leaseSeconds: number;
  /** The pause between two sweeps, unless something wakes the sweep earlier. */
  sweepMs: number;
  /**
   * The most workflows of one organisation that this process runs at the same time. For several organisations together
   * it runs at most twice as many.
   */
  concurrency: number;
  /** Like `concurrency`, for workflows that a request waits for, which have separate slots. Default 2. */
  interactiveConcurrency?: number;
  log: Log;
  /** Wakes a sweep when any process announces due work. Without a listener, this work waits for the next sweep. */
  listener?: WorkflowListener;
  /** The number of successive workers that may die during one workflow before it waits for staff. Default 5. */
  crashesMax?: number;
  /**
   * Seconds for which a dependency of a step may be unreachable before each further failure uses up an attempt. Default
   * 900.
   */
  outageSecondsMax?: number;
  /**
   * The milliseconds without a failure after which an outage counts as over. A failed attempt that took longer than
   * this always uses up an attempt, even if an outage made it fail. Default 120,000.
   */
  outagePassedAfterMs?: number;
}

export interface Engine {
  start(): void;
  /**
   * Takes no new workflows, aborts the signals of running steps and gives their workflows back. Resolves within
   * seconds.
   */
  stop(): Promise<void>;
  /**
   * Rejects if the queue does not answer. Also rejects if this worker is idle and the queue has delivered nothing for
   * some time, not even a probe.
   */
  checkQueue(): Promise<void>;
}

/** Opens a worker: the sweep (enqueueing, recovery, schedules), the workers of both queues, and the runner. */
export function createEngine<Context, Tx>(options: EngineOptions<Context, Tx>): Engine {
  const { database, log, leaseSeconds } = options;
  const definitions = byKind(options.definitions);
  const stepNamesByKind = JSON.stringify(
    Object.fromEntries([...definitions.values()].map(({ kind, steps }) => [kind, steps.map((step) => step.name)])),
  );
  const stopping = new AbortController();
  const changed = createAnnouncer(database.sql(), log);
  let inHand = 0;
  let parts: Parts | undefined;

  const runner: Runner<Context, Tx> = {
    database,
    context: options.context,
    definitions,
    leaseSeconds,
    log,
    crashesMax: options.crashesMax ?? 5,
    outages: createOutages(options.outageSecondsMax, options.outagePassedAfterMs),
    stopping: stopping.signal,
    changed,
    dueIn: (seconds) => parts?.loop.wakeIn(seconds * 1_000),
  };
  const following = new Set<Promise<void>>();
  let raising: Promise<unknown> | undefined;
  /**
   * Raises the fences once, before the first claim, because the database may have been restored from a backup while no
   * worker ran.
   */
  const raiseOnce = async (): Promise<void> => {
    raising ??= raiseFences(database);
    await raising.catch((error: unknown) => {
      raising = undefined;
      throw error;
    });
  };
  const run = async (job: WorkflowJob, slots: Slots): Promise<RunEnd> => {
    inHand += 1;
    try {
      await raiseOnce();
      return await runWorkflow(runner, stepNamesByKind, job);
    } finally {
      inHand -= 1;
      follow(job.orgId, slots);
    }
  };
  /**
   * Gives the slot of an ended run to a waiting job; see {@link Slots.next}. If no job gets the slot although some
   * organisation used its whole share, the sweep is woken, because that organisation may have due work that is not in
   * the queue.
   */
  const follow = (orgId: string, slots: Slots): void => {
    const someWereFull = slots.full().length > 0;
    const next = slots.next(orgId);
    if (next !== undefined && !stopping.signal.aborted) {
      const running: Promise<void> = run(next, slots).then(
        () => void following.delete(running),
        (error: unknown) => {
          following.delete(running);
          log.warn({ workflow_id: next.workflowId, internal: messageOf(error) }, 'a job could not be handled');
        },
      );
      following.add(running);
    } else if (someWereFull) parts?.loop.wakeIn(refillPauseMs);
  };
  const handle = async (job: WorkflowJob, slots: Slots): Promise<RunEnd> => {
    if (stopping.signal.aborted) return 'ignored';
    const got = slots.take(job);
    if (got === 'taken') return run(job, slots);
    if (got === 'declined') await jobDeclined(database.sql(), job.workflowId);
    return 'ignored';
  };
  const start = (): void => {
    if (parts !== undefined) throw new Error('the engine is running');
    beginCounting([...definitions.keys()]);
    const opened = queueKinds.map((kind) => openWorkerQueue(options, kind));
    const relay = {
      database,
      queues: opened,
      log,
      leaseSeconds,
      onFailed: failBy(definitions, options.context, log),
      changed,
      report: createReport({
        database,
        kinds: [...definitions.keys()],
        isReporter: async () => options.listener === undefined || (await options.listener.isFirst()),
      }),
    };
    const loop = loopSweeps(options.sweepMs, () => sweep(relay));
    for (const own of opened) own.startWorker(handle, () => loop.wakeIn(refillPauseMs));
    parts = { opened, loop, unlisten: options.listener?.onDue(loop.wake) };
  };
  return {
    start,
    stop: async () => {
      stopping.abort();
      parts?.unlisten?.();
      await parts?.loop.stop();
      await Promise.all(parts?.opened.map((own) => own.close()) ?? []);
      await Promise.all(following);
      // After the announcement, another worker continues at once with the workflows that were given back.
      await announceDue(database.sql()).catch(() => undefined);
    },
    checkQueue: async () => {
      const opened = parts?.opened ?? [];
      // Each queue is asked for its length. A frozen queue does not answer in time, so this check fails long before
      // `unreadyAfterSeconds` have passed.
      await Promise.all(opened.map((own) => own.queue.waiting()));
      if (inHand === 0 && opened.some((own) => own.silentSeconds() >= unreadyAfterSeconds))
        throw new Error('the queue has delivered nothing for a while');
    },
  };
}

interface Parts {
  opened: readonly WorkerQueue[];
  loop: SweepLoop;
  unlisten: (() => void) | undefined;
}

/** The seconds without a job after which an idle worker is unready. Its sweep probes the queue earlier. */
const unreadyAfterSeconds = 30;
const refillPauseMs = 15;

function byKind<Context, Tx>(
  definitions: EngineOptions<Context, Tx>['definitions'],
): ReadonlyMap<string, WorkflowDefinition<Context, Tx>> {
  const byName = new Map<string, WorkflowDefinition<Context, Tx>>();
  for (const definition of definitions) {
    if (byName.has(definition.kind)) throw new Error(`two workflows of kind ${definition.kind}`);
    byName.set(definition.kind, definition);
  }
  return byName;
}

/**
 * Makes the function that calls the `failed` hook of a workflow that the sweep cancels. No hook is called if the kind
 * is unknown or the input does not match its schema.
 */
function failBy<Context, Tx>(
  definitions: ReadonlyMap<string, WorkflowDefinition<Context, Tx>>,
  context: Context,
  log: Log,
): OnFailed<Tx> {
  return async (tx, run, problem, kind) => {
    const definition = definitions.get(kind);
    const input = definition?.input.safeParse(run.input);
    if (definition === undefined || input?.success !== true) {
      log.error({ workflow_id: run.workflowId, kind }, 'cancelled without its hook: kind or input unknown');
      return;
    }
    await definition.onEnd.failed?.(tx, { ...run, input: input.data }, problem, context);
  };
}
