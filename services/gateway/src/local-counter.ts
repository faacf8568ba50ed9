import { performance } from 'node:perf_hooks';
import type { WindowCount } from './batch-counter';

interface Window {
  consumed: number;
  endsMs: number;
}

/** Whole milliseconds: with a fraction, a minute's window would show 61 s in the header. */
const wholeMs = (): number => Math.floor(performance.now());

/** `amount` 0 only looks. */
export type LocalCounter = (holder: string, amount?: 0 | 1) => WindowCount;

/**
 * Counts calls in this process alone, at once: a fixed window for each holder, which begins with its first call.
 * Holders are verified keys and organisations, so nobody can make many; once per window those whose window has ended
 * are removed.
 */
export function createLocalCounter(windowMs: number, nowMs: () => number = wholeMs): LocalCounter {
  const windows = new Map<string, Window>();
  let sweepMs = nowMs() + windowMs;
  const open = (holder: string, now: number): Window => {
    if (now >= sweepMs) {
      sweepMs = now + windowMs;
      for (const [old, { endsMs }] of windows) if (now >= endsMs) windows.delete(old);
    }
    const window = { consumed: 0, endsMs: now + windowMs };
    windows.set(holder, window);
    return window;
  };
  return (holder, amount = 1) => {
    const now = nowMs();
    const known = windows.get(holder);
    const window = known !== undefined && now < known.endsMs ? known : open(holder, now);
    window.consumed += amount;
    return { consumed: window.consumed, msBeforeNext: window.endsMs - now };
  };
}
