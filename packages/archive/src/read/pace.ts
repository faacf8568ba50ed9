import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * The longest time for which synchronous work may block the event loop, because the same process may renew leases and
 * answer health checks.
 */
const sliceMilliseconds = 10;

export type Pace = () => Promise<void> | undefined;

/**
 * Returns a function to call between pieces of synchronous work. If 10 ms have passed since the event loop last ran,
 * the function lets it run. @throws the signal's reason once it is aborted
 */
export function createPace(signal?: AbortSignal): Pace {
  let started = performance.now();
  return () => {
    signal?.throwIfAborted();
    if (performance.now() - started < sliceMilliseconds) return undefined;
    return nextTurn().then(() => {
      started = performance.now();
      signal?.throwIfAborted();
    });
  };
}
