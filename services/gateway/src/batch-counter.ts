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
  /** Runs while somebody waits, one question at a time. */
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
