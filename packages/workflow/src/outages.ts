/** What is out of reach while it is asked again and again. */
export interface Outages {
  /** Notes that `what` was out of reach just now. True while that may still pass, false once it has lasted too long to be waited for. */
  isPassing(what: string): boolean;
}

/** Longer than a host takes to start again or a Postgres to fail over; after that it is a failure like any other, which ends or calls staff. */
const outageSecondsDefault = 900;

/** Not met for so long, it had passed: it is asked for every few seconds. */
const passedAfterMs = 120_000;

/** Kept by each worker for itself: one that has not seen an outage begin is patient for as long again. */
export function createOutages(secondsMax = outageSecondsDefault): Outages {
  const met = new Map<string, { sinceMs: number; lastMs: number }>();
  return {
    isPassing: (what) => {
      const nowMs = performance.now();
      for (const [other, { lastMs }] of met) if (nowMs - lastMs > passedAfterMs) met.delete(other);
      const sinceMs = met.get(what)?.sinceMs ?? nowMs;
      met.set(what, { sinceMs, lastMs: nowMs });
      return nowMs - sinceMs < secondsMax * 1_000;
    },
  };
}
