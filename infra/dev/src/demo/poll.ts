import { setTimeout as sleep } from 'node:timers/promises';

/** The time limit for an operation of the demo, which has little content. It is enough for a slow machine. */
const operationSecondsMax = 120;

/** Calls `look` until it returns something. @throws after `operationSecondsMax`, with `what` in the message */
export async function poll<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const end = performance.now() + operationSecondsMax * 1000;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > end)
      throw new Error(`${what} took longer than ${operationSecondsMax} s; see the logs folder`);
    await sleep(200);
  }
}
