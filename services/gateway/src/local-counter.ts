import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';

/** The window after `amount` calls were counted in it at once. */
export interface WindowCount {
  /** All calls counted in the window so far, these included. */
  consumed: number;
  msBeforeNext: number;
}

interface Batch {
  waiting: Array<{ resolve(count: WindowCount): void; reject(error: unknown): void }>;
}

/** Counts one call; resolves with the window as this very call found it. */
export type CountOne = (holder: string) => Promise<WindowCount>;

/**
 * The pause between two questions about one holder. A caller that sends one request after the other never waits for it.
 */
const everyMs = 1;

/**
 * Joins calls of one holder that arrive shortly after each other into one question: under load one round trip serves
 * many, and each still gets its own place in the window, so that a quota stays exact. The first call is never delayed.
 */
export function createBatchCounter(countMany: (holder: string, amount: number) => Promise<WindowCount>): CountOne {
  const next = new Map<string, Batch>();
  const ask = async (holder: string, { waiting }: Batch): Promise<void> => {
    try {
      const { consumed, msBeforeNext } = await countMany(holder, waiting.length);
      const before = consumed - waiting.length;
      for (const [index, one] of waiting.entries()) one.resolve({ consumed: before + index + 1, msBeforeNext });
    } catch (error) {
      for (const one of waiting) one.reject(error);
    }
  };
  /** Asks while somebody waits, one question at a time. */
  const run = async (holder: string): Promise<void> => {
    for (;;) {
      const batch = next.get(holder);
      if (batch === undefined || batch.waiting.length === 0) break;
      next.set(holder, { waiting: [] });
      await Promise.all([ask(holder, batch), wait(everyMs)]);
    }
    next.delete(holder);
  };
  return (holder) =>
    new Promise((resolve, reject) => {
      const batch = next.get(holder);
      if (batch !== undefined) {
        batch.waiting.push({ resolve, reject });
        return;
      }
      next.set(holder, { waiting: [{ resolve, reject }] });
      void run(holder);
    });
}

interface Window {
  consumed: number;
  endsMs: number;
}

/** Returns whole milliseconds. With a fraction, a minute's window would show 61 s in the header. */
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
