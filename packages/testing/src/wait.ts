import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  /** 30 s when missing: tests run next to others, on machines of any speed. */
  timeoutMs?: number;
  /** 20 ms when missing. */
  everyMs?: number;
  /** Names the condition in the error's message. */
  what?: string;
}

type Present<T> = Exclude<T, null | undefined | false | 0 | ''>;

/** Thrown by a condition when something is wrong that waiting cannot repair. {@link until} throws it at once. */
export class InvariantViolated extends Error {
  override name = 'InvariantViolated';
}

/**
 * A machine may stand still for the whole time, so the condition must be asked more than twice before the wait fails.
 */
const looksMin = 50;

/**
 * Asks again until the condition returns something truthy, and returns that. A condition that throws counts as not yet
 * true, except for {@link InvariantViolated}. @throws after `timeoutMs` and at least 50 calls, with the condition's
 * last error as cause
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
