import { setTimeout as wait } from 'node:timers/promises';
import { problem } from '@drydock/contracts/platform/problem';
import { scaled } from '@drydock/process';

/** The longest wait for a turn, in milliseconds. Calls are short, so a longer wait is the sign of a failure. */
const waitMsMaxDefault = 8_000;

/**
 * Lets callers who change the same thing take turns, in the order of their arrival. With only a row lock of Postgres,
 * each waiting caller would hold a connection. A dozen calls for one site would hold all connections of this process,
 * and calls for other sites would fail. Between processes the row lock still decides.
 */
export interface Turns {
  /**
   * Resolves with the result of `work`, which runs once all earlier callers for `thing` have had their turn. Throws 503
   * if the turn does not come within `withinMs`. A `withinMs` above eight seconds counts as eight seconds.
   */
  take<T>(thing: string, work: () => Promise<T>, withinMs?: number): Promise<T>;
}

export function createTurns(waitMsMax = scaled(waitMsMaxDefault)): Turns {
  /** For each thing, a promise that settles when the last waiting caller has had its turn. */
  const lines = new Map<string, Promise<void>>();
  return {
    async take(thing, work, withinMs = waitMsMax) {
      const before = lines.get(thing);
      let leave = (): void => undefined;
      const mine = new Promise<void>((resolve) => {
        leave = resolve;
      });
      const line = before === undefined ? mine : before.then(() => mine);
      lines.set(thing, line);
      void line.then(() => lines.get(thing) === line && lines.delete(thing));
      try {
        if (before !== undefined) await waitForTurn(before, Math.max(0, Math.min(withinMs, waitMsMax)));
        return await work();
      } finally {
        leave();
      }
    },
  };
}

async function waitForTurn(line: Promise<void>, waitMsMax: number): Promise<void> {
  const timer = new AbortController();
  const late = wait(waitMsMax, 'late', { signal: timer.signal });
  try {
    if ((await Promise.race([line, late])) !== 'late') return;
  } finally {
    late.catch(() => undefined);
    timer.abort();
  }
  throw problem('dependency_unavailable', {
    detail: 'Other calls for the same resource took too long. Nothing was started. Try again after Retry-After.',
    extra: { dependency: 'database' },
    retryAfterSeconds: 1,
  });
}
