import type { Database } from '@drydock/database/sql';
import { announceDue, createAnnouncer } from './announce';
import type { SettleFailed } from './cancel-unclaimed';
import { type Consumer, consume } from './consumer';
import type { WorkflowDefinition } from './definition';
import type { Runner } from './execution';
import type { WorkflowListener } from './listener';
import type { Log } from './log';
import { openQueue } from './queue';
import { sweep } from './relay';
import { runWorkflow } from './run-workflow';
import { messageOf } from './step-error';
import { loopSweeps, type SweepLoop } from './sweep-loop';

export interface EngineOptions<Tx> {
  database: Database<Tx>;
  definitions: readonly WorkflowDefinition<Tx>[];
  /** redis://, rediss:// or postgresql:// (prepared by {@link prepareQueue}). */
  queueUrl: string;
  queueName: string;
  /** How long a worker that is not heard of keeps its workflows. Renewed every third of it. */
  leaseSeconds: number;
  /** How often the clock looks, when nothing else wakes the sweep. */
  sweepMs: number;
  /** Workflows that this process carries at once. */
  concurrency: number;
  log: Log;
  /** Makes sweeps begin at once. Left out, the clock does. */
  listener?: WorkflowListener;
  /** Workers in a row that may die over one workflow. Default 5. */
  deathsMax?: number;
}

export interface Engine {
  start(): void;
  /** Takes nothing new, aborts the signals of running steps, gives their leases back and resolves within seconds. */
  stop(): Promise<void>;
  /** False when the queue has delivered nothing, not even a ring for nobody, for half a minute though nothing is being worked on. */
  isConsuming(): boolean;
}

/** The worker side: sweep (relay, recovery, schedules), consumer, runner. */
export function createEngine<Tx>(options: EngineOptions<Tx>): Engine {
  const { database, log, leaseSeconds, concurrency } = options;
  const definitions = byKind(options.definitions);
  const stepNamesByKind = JSON.stringify(
    Object.fromEntries([...definitions.values()].map(({ kind, steps }) => [kind, steps.map((step) => step.name)])),
  );
  const stopping = new AbortController();
  const changed = createAnnouncer(database.sql(), log);
  const watch = { deliveredAtMs: performance.now(), inHand: 0, hasBacklog: false };
  let parts: Parts | undefined;

  const runner: Runner<Tx> = {
    database,
    definitions,
    leaseSeconds,
    log,
    deathsMax: options.deathsMax ?? 5,
    stopping: stopping.signal,
    changed,
    dueIn: (seconds) => parts?.loop.wakeIn(seconds * 1_000),
  };
  const answer = async (workflowId: string) => {
    if (stopping.signal.aborted) return 'ignored' as const;
    watch.inHand += 1;
    try {
      return await runWorkflow(runner, stepNamesByKind, workflowId);
    } finally {
      watch.inHand -= 1;
    }
  };
  const start = (): void => {
    if (parts !== undefined) throw new Error('the engine is running');
    const queue = openQueue(options);
    const silentSeconds = (): number => (performance.now() - watch.deliveredAtMs) / 1_000;
    const waitingMax = Math.max(32, 4 * concurrency);
    const relay = { database, queue, log, leaseSeconds, waitingMax, settleFailed: settleBy(definitions, log), silentSeconds, changed };
    const loop = loopSweeps(options.sweepMs, async () => {
      watch.hasBacklog = await sweep(relay);
    });
    const delivered = (): void => {
      watch.deliveredAtMs = performance.now();
      // The sweep keeps the queue short, so it must refill it as it empties: once for all jobs of a moment.
      if (watch.hasBacklog) loop.wakeIn(refillPauseMs);
      watch.hasBacklog = false;
    };
    const consumer = consume({ ...options, answer, delivered });
    parts = { queue, loop, consumer, unlisten: options.listener?.onDue(loop.wake) };
  };
  return {
    start,
    stop: async () => {
      stopping.abort();
      parts?.unlisten?.();
      await parts?.loop.stop();
      await parts?.consumer.close().catch((error: unknown) => log.warn({ internal: messageOf(error) }, 'consumer did not close'));
      await parts?.queue.close();
      // Whoever else listens takes over what was handed back.
      await announceDue(database.sql()).catch(() => undefined);
    },
    isConsuming: () => watch.inHand > 0 || performance.now() - watch.deliveredAtMs < silenceMaxMs,
  };
}

interface Parts {
  queue: ReturnType<typeof openQueue>;
  loop: SweepLoop;
  consumer: Consumer;
  unlisten: (() => void) | undefined;
}

const silenceMaxMs = 30_000;
const refillPauseMs = 15;

function byKind<Tx>(definitions: EngineOptions<Tx>['definitions']): ReadonlyMap<string, WorkflowDefinition<Tx>> {
  const byName = new Map<string, WorkflowDefinition<Tx>>();
  for (const definition of definitions) {
    if (byName.has(definition.kind)) throw new Error(`two workflows of kind ${definition.kind}`);
    byName.set(definition.kind, definition);
  }
  return byName;
}

/** A workflow that the sweep cancels settles as its definition says; an input that cannot be read settles nothing. */
function settleBy<Tx>(definitions: ReadonlyMap<string, WorkflowDefinition<Tx>>, log: Log): SettleFailed<Tx> {
  return async (tx, run, problem, kind) => {
    const definition = definitions.get(kind);
    const input = definition?.input.safeParse(run.input);
    if (definition === undefined || input?.success !== true) {
      log.error({ workflow_id: run.workflowId, kind }, 'cancelled without its hook: kind or input unknown');
      return;
    }
    await definition.settle.failed?.(tx, { ...run, input: input.data }, problem);
  };
}
