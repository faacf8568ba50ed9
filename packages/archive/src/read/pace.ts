import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * The longest time for which synchronous work here blocks the event loop. The same process renews leases and answers
 * health checks.
 */
const sliceMilliseconds = 10;

export type Pace = () => Promise<void> | undefined;

/**
 * A function to call between pieces of synchronous work. It gives the event loop a turn when the last turn was 10 ms
 * ago. @throws the signal's reason once it is aborted
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
