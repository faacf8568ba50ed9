import { performance } from 'node:perf_hooks';
import type { Sql } from '@drydock/service/database/sql';
import { withoutSpans } from '@drydock/service/telemetry/spans';
import type { Log } from '../definition/definition';
import { LeaseLost, messageOf } from '../definition/step-error';
import type { ClaimKey } from '../store/claim.types';
import { renewLease } from '../store/workflow-states';

export interface HeldLease {
  /** Aborted with {@link LeaseLost} once the workflow may belong to another worker. */
  signal: AbortSignal;
  /** Stops the renewals; waits for a running one. */
  release(): Promise<void>;
}

/**
 * Renews the lease every third of it until released, whatever the step is doing. It is lost if Postgres says so, or if
 * no renewal got through for as long as the lease lasts, counted on this process's monotonic clock from before the last
 * successful one was sent.
 */
export function keepLease(
  sql: Sql,
  claim: ClaimKey,
  options: { leaseSeconds: number; claimedAtMs: number; log: Log },
): HeldLease {
  const lost = new AbortController();
  const leaseMs = options.leaseSeconds * 1_000;
  let endsAtMs = options.claimedAtMs + leaseMs;
  let renewal: Promise<void> = Promise.resolve();
  let busy = false;
  const lose = (why: string): void => {
    clearInterval(timer);
    if (lost.signal.aborted) return;
    options.log.warn({ why }, 'lease lost');
    lost.abort(new LeaseLost(claim.id));
  };
  const renew = async (): Promise<void> => {
    const sentAtMs = performance.now();
    if (sentAtMs > endsAtMs) {
      // The process was frozen or cut off. The lease may still be ours, which only Postgres knows: the next renewal
      // that gets through decides.
      options.log.warn({ late_ms: Math.round(sentAtMs - endsAtMs) }, 'lease overdue');
    }
    try {
      await withoutSpans(() => renewLease(sql, claim, options.leaseSeconds));
      endsAtMs = sentAtMs + leaseMs;
    } catch (error) {
      if (error instanceof LeaseLost) lose('claimed by somebody else, or ended');
      else if (performance.now() > endsAtMs) lose(`no renewal within the lease: ${messageOf(error)}`);
    }
  };
  const timer = setInterval(() => {
    if (busy) {
      if (performance.now() > endsAtMs) lose('Postgres does not answer');
      return;
    }
    busy = true;
    renewal = renew().finally(() => {
      busy = false;
    });
  }, leaseMs / 3);
  return {
    signal: lost.signal,
    release: async () => {
      clearInterval(timer);
      await renewal;
    },
  };
}
