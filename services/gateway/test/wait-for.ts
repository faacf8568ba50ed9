import { setTimeout as wait } from 'node:timers/promises';

/** Until `condition` holds; rejects after `withinMs`. */
export async function waitFor(condition: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const endMs = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > endMs) throw new Error(`not within ${withinMs} ms: ${condition.toString()}`);
    await wait(10);
  }
}
