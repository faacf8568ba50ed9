import { setTimeout as wait } from 'node:timers/promises';

/** Resolves when the condition holds; throws after 15 s. */
export async function waitFor(condition: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + 15_000;
  while (!(await condition())) {
    if (performance.now() > untilMs) throw new Error('the condition did not come true');
    await wait(25);
  }
}
