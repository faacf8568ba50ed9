import { setTimeout as wait } from 'node:timers/promises';
import { ComputeError } from '../compute-provider';

const attemptsMax = 3;
const firstPauseMs = 150;

/**
 * Repeats a read that was `unavailable`, or `rate_limited` for no longer than is left, within `deadlineMs` in all, with
 * pauses that double and jitter. `attempt` gets the end of its own share of the time, so that a hanging attempt leaves
 * time for another.
 */
export async function readAgain<T>(
  deadlineMs: number,
  attempt: (ends: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const endsAtMs = performance.now() + deadlineMs;
  for (let tried = 1; ; tried += 1) {
    const ownMs = Math.max(1, Math.min(deadlineMs * 0.4, endsAtMs - performance.now()));
    const ends = AbortSignal.timeout(Math.ceil(ownMs));
    try {
      return await attempt(signal === undefined ? ends : AbortSignal.any([ends, signal]));
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof ComputeError)) throw error;
      const pauseMs = pauseOf(error, tried);
      if (pauseMs === null || tried === attemptsMax || performance.now() + pauseMs >= endsAtMs) throw error;
      await wait(pauseMs, undefined, { signal });
    }
  }
}

function pauseOf({ reason, retryAfterSeconds }: ComputeError, tried: number): number | null {
  const jitter = 0.75 + Math.random() / 2;
  if (reason === 'rate_limited') return (retryAfterSeconds ?? 1) * 1_000 * (1 + Math.random() / 4);
  return reason === 'unavailable' && retryAfterSeconds === null ? firstPauseMs * 2 ** (tried - 1) * jitter : null;
}
