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
  /** The drivers, stores and clock that every step is given besides its run. */
  context: Context;
  /** redis://, rediss:// or postgresql:// (prepared by {@link prepareQueue}). */
  queueUrl: string;
  queueName: string;
  /** How long a worker that does not renew its leases keeps its workflows. They are renewed every third of it. */
  leaseSeconds: number;
  /** The pause between two sweeps that nothing else wakes. */
  sweepMs: number;
  /**
   * How many workflows of one organisation this process runs at once while no other organisation has work. For several
   * organisations it runs twice as many.
   */
  concurrency: number;
  /** How many workflows that a request waits for this process runs in addition, counted likewise. Default 2. */
  interactiveConcurrency?: number;
  log: Log;
  /** Wakes sweeps at once. Without it only the clock does. */
  listener?: WorkflowListener;
  /** Workers in a row that may die during one workflow. Default 5. */
  crashesMax?: number;
  /**
   * Seconds for which a dependency of a step may be out of reach before that counts as the step's failure. Default 900.
   */
  outageSecondsMax?: number;
}

export interface Engine {
  start(): void;
  /** Takes nothing new, aborts the signals of running steps, gives their leases back and resolves within seconds. */
  stop(): Promise<void>;
  /**
   * Rejects if the queue does not answer, or has delivered nothing, not even a probe, for half a minute while nothing
   * is running.
   */
  checkQueue(): Promise<void>;
}

/** The worker side: sweep (enqueueing, recovery, schedules), workers of both queues, runner. */
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
    outages: createOutages(options.outageSecondsMax),
    stopping: stopping.signal,
    changed,
    dueIn: (seconds) => parts?.loop.wakeIn(seconds * 1_000),
  };
  const following = new Set<Promise<void>>();
  let raising: Promise<unknown> | undefined;
  /** Runs before the first claim, because the database may have been put back from a backup while no worker ran. */
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
  /** A free slot goes to the same organisation's next job that waits here, or to work that the sweep finds. */
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
      // Another listening worker takes over the released ones.
      await announceDue(database.sql()).catch(() => undefined);
    },
    checkQueue: async () => {
      const opened = parts?.opened ?? [];
      // Asks each queue for its length, because a frozen queue fails at once here, long before its silence is noticed.
      await Promise.all(opened.map((own) => own.queue.waiting()));
      if (inHand === 0 && opened.some((own) => own.silentSeconds() >= silenceMaxSeconds))
        throw new Error('the queue has delivered nothing for a while');
    },
  };
}

interface Parts {
  opened: readonly WorkerQueue[];
  loop: SweepLoop;
  unlisten: (() => void) | undefined;
}

const silenceMaxSeconds = 30;
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
 * A workflow that the sweep cancels ends with its definition's hook; if its input cannot be read, only the workflow
 * itself ends.
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
