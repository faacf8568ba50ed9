import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import type { Log } from '../telemetry/log';
import { stopTelemetry } from '../telemetry/telemetry';

interface Phase {
  name: string;
  close: () => unknown;
  timeoutMs: number;
}

/**
 * The resources that a process has opened. They are closed in reverse order. Each resource has its own time limit, and
 * all together have `limitMs`.
 */
export interface Lifetime {
  readonly limitMs: number;
  /**
   * Registers the closing of a resource, right after it was opened. `timeoutMs` defaults to 5 s. A closing that fails
   * or hangs is logged and does not stop the others.
   */
  onClose(name: string, close: () => unknown, timeoutMs?: number): void;
  /** Closes everything once. Later calls wait for the first one. */
  close(): Promise<void>;
}

/**
 * How long a process may take to close once it has drained. Docker Compose and the Helm chart kill a process after a
 * longer time.
 */
export const shutdownLimitMs = 25_000;

export function createLifetime(log: Log, limitMs = shutdownLimitMs): Lifetime {
  const phases: Phase[] = [];
  let closing: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    const endsAtMs = performance.now() + limitMs;
    for (let phase = phases.pop(); phase !== undefined; phase = phases.pop()) await closePhase(phase, endsAtMs, log);
  };
  return {
    limitMs,
    onClose: (name, close, timeoutMs = 5_000) => {
      phases.push({ name, close, timeoutMs });
    },
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}

async function closePhase(phase: Phase, endsAtMs: number, log: Log): Promise<void> {
  const startedMs = performance.now();
  const timer = new AbortController();
  const late = wait(Math.max(0, Math.min(phase.timeoutMs, endsAtMs - startedMs)), 'late' as const, {
    signal: timer.signal,
  }).catch(() => 'done' as const);
  const done = Promise.resolve()
    .then(phase.close)
    .then(
      () => 'closed' as const,
      (error: unknown) => {
        log.error({ err: error, phase: phase.name }, 'shutdown phase failed');
        return 'failed' as const;
      },
    );
  const outcome = await Promise.race([done, late]);
  timer.abort();
  log.info({ phase: phase.name, outcome, duration_ms: Math.round(performance.now() - startedMs) }, 'shutdown phase');
}

/**
 * Ends the process in order on a signal such as SIGTERM or SIGINT: closes the lifetime, sends the remaining spans, and
 * exits with 0. After an uncaught exception or unhandled rejection, the state of the process is unknown. So the error
 * is logged, and the process exits with 1 at once. That loses no work, because work is recorded in Postgres.
 */
export function closeOnSignal(lifetime: Lifetime, log: Log): void {
  // The limit of close-with-grace exceeds that of the lifetime, so it only matters if the lifetime or telemetry fails
  // to end. `beforeExit` is skipped, because it is no reason to close.
  closeWithGrace({ delay: lifetime.limitMs + 3_000, logger: false, skip: ['beforeExit'] }, async ({ err, signal }) => {
    if (err !== undefined) {
      log.fatal({ err }, 'crash');
      return;
    }
    log.info({ signal }, 'shutting down');
    await lifetime.close();
    await stopTelemetry();
    log.info('shut down');
  });
}
