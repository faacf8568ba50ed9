import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  /** The time limit. Default: 30 s, because tests run beside other tests and on slow machines. */
  timeoutMs?: number;
  /** The pause between calls. Default: 20 ms. */
  everyMs?: number;
  /** The name of the condition in the error's message. */
  what?: string;
}

type Present<T> = Exclude<T, null | undefined | false | 0 | ''>;

/** The error that a condition throws if waiting cannot make it true. {@link until} then rejects at once. */
export class InvariantViolated extends Error {
  override name = 'InvariantViolated';
}

/** The fewest calls before a wait fails. A machine that stands still could use up the time limit in one call. */
const looksMin = 50;

/**
 * Calls the condition until it returns a truthy value, and returns that value. A throwing condition counts as not true,
 * except for {@link InvariantViolated}. @throws after `timeoutMs` and at least 50 calls, with the condition's last
 * error as cause
 */
export async function until<T>(condition: () => T | Promise<T>, options: WaitOptions = {}): Promise<Present<T>> {
  const { timeoutMs = 30_000, everyMs = 20, what = 'the condition' } = options;
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  for (let looks = 1; ; looks += 1) {
    try {
      const value = await condition();
      if (isPresent(value)) return value;
      lastError = undefined;
    } catch (error) {
      if (error instanceof InvariantViolated) throw error;
      lastError = error;
    }
    if (performance.now() > deadline && looks >= looksMin)
      throw new Error(`${what} did not come true within ${timeoutMs} ms and ${looks} looks`, { cause: lastError });
    await sleep(everyMs);
  }
}

function isPresent<T>(value: T): value is Present<T> {
  return Boolean(value);
}
