import { setTimeout as wait } from 'node:timers/promises';

const firstPauseMs = 1_000;

/** One second and twice as much each time, give or take a quarter: what the provider's own client does after a conflict. */
export const pauseBeforeConflict = (tried: number, signal?: AbortSignal): Promise<void> =>
  wait(firstPauseMs * 2 ** (tried - 1) * (0.75 + Math.random() / 2), undefined, { signal });
