import { performance } from 'node:perf_hooks';

export interface VerificationCacheOptions<Answer> {
  /** Asks whether a token is valid. `traceparent` is the trace of the request that asks. */
  ask(token: string, traceparent?: string): Promise<Answer>;
  /** Milliseconds of a monotonic clock. */
  nowMs?: () => number;
  /**
   * How long an answer may be trusted, from the moment its request was SENT. The keys service answers a revocation only
   * after a little more than `trustMs`.
   */
  trustMs?: number;
  entriesMax?: number;
}

/** The part of `trustMs` after which an answer is renewed, if its key is in use. */
const renewAt = 0.75;

interface Entry<Answer> {
  askedMs: number;
  asking: Promise<Answer> | undefined;
  answer: Answer | undefined;
  /** The answer that will replace this answer. It is requested while this answer may still be trusted. */
  next?: Entry<Answer>;
}

export interface VerificationCache<Answer> {
  /** An answer that may still be trusted. */
  fresh(key: string): Answer | undefined;
  /**
   * The answer to the last look-up, however old. Undefined if that look-up has failed. It only decides whether the next
   * look-up of the token is limited.
   */
  last(key: string): Answer | undefined;
  /**
   * Renews an answer in the background shortly before it becomes too old, so that later callers do not wait. It must be
   * called for accepted keys only; other tokens are looked up by `verify`. If the renewal fails, the answer is trusted
   * until its time is up, and then the next caller asks.
   */
  renew(key: string, token: string): void;
  /**
   * Returns the answer while it is trusted. Otherwise asks, or joins a request about the same token that was sent less
   * than `trustMs` ago. Rejects with the errors of `ask`, which are not kept.
   */
  verify(key: string, token: string, traceparent?: string): Promise<Answer>;
}

/** Makes a cache of verifications. `key` is a hash of the token, so that no token is kept. */
export function createVerificationCache<Answer>(options: VerificationCacheOptions<Answer>): VerificationCache<Answer> {
  const { ask, nowMs = () => performance.now(), trustMs = 1_000, entriesMax = 10_000 } = options;
  const entries = new Map<string, Entry<Answer>>();
  const isTrusted = (entry: Entry<Answer>): boolean => nowMs() - entry.askedMs < trustMs;

  const remember = (key: string, entry: Entry<Answer>): void => {
    // The first entry is the oldest, because a renewed entry moves to the end.
    entries.delete(key);
    if (entries.size >= entriesMax) for (const oldest of entries.keys()) if (entries.delete(oldest)) break;
    entries.set(key, entry);
  };
  const send = async (key: string, token: string, traceparent: string | undefined): Promise<Answer> => {
    const entry: Entry<Answer> = { askedMs: nowMs(), asking: undefined, answer: entries.get(key)?.answer };
    const asking = ask(token, traceparent);
    entry.asking = asking;
    remember(key, entry);
    try {
      entry.answer = await asking;
      return entry.answer;
    } catch (error) {
      if (entries.get(key) === entry) entries.delete(key);
      throw error;
    } finally {
      entry.asking = undefined;
    }
  };
  const renew = (key: string, token: string, entry: Entry<Answer>): void => {
    const asking = ask(token);
    const next: Entry<Answer> = { askedMs: nowMs(), asking, answer: undefined };
    entry.next = next;
    const end = (answer: Answer | undefined): void => {
      next.asking = undefined;
      next.answer = answer;
      if (answer !== undefined && entries.get(key) === entry) remember(key, next);
    };
    asking.then(end, () => end(undefined));
  };
  return {
    renew: (key, token) => {
      const entry = entries.get(key);
      if (entry?.answer === undefined || entry.asking !== undefined || entry.next !== undefined) return;
      if (nowMs() - entry.askedMs >= trustMs * renewAt) renew(key, token, entry);
    },
    fresh: (key) => {
      const entry = entries.get(key);
      return entry !== undefined && entry.asking === undefined && isTrusted(entry) ? entry.answer : undefined;
    },
    last: (key) => entries.get(key)?.answer,
    verify: async (key, token, traceparent) => {
      for (;;) {
        const last = entries.get(key);
        const entry = last !== undefined && !isTrusted(last) && last.next?.asking !== undefined ? last.next : last;
        if (entry === undefined || !isTrusted(entry)) return send(key, token, traceparent);
        const answer = entry.asking === undefined ? entry.answer : await entry.asking;
        // An answer may arrive after its time of trust has passed. It is then good for the caller that asked, but too
        // old for a caller that joined later.
        if (answer !== undefined && isTrusted(entry)) return answer;
      }
    },
  };
}
