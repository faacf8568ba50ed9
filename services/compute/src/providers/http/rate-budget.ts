import { setTimeout as wait } from 'node:timers/promises';
import { ComputeError } from '../compute-provider';
import type { HttpAnswer } from './provider-http';

/**
 * Paces the calls of this process. All callers of an account share one limit, and only the provider counts their calls.
 * While more than a tenth of the limit is left, nobody waits. Below a tenth, each process slows down in proportion to
 * the calls that are left. So all processes together stay within the limit, and each gets the same share.
 */
interface RateBudget {
  /** Resolves when a call may be sent. Rejects with `rate_limited` if the wait would exceed `waitMsMax`. */
  admit(signal?: AbortSignal): Promise<void>;
  /** Reads the headers RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset of an answer. */
  note(answer: Pick<HttpAnswer, 'status' | 'headers'>): void;
}

/**
 * The longest wait within a call. A step that would have to wait longer is repeated later, so that its worker is free
 * meanwhile.
 */
const waitMsMax = 4_000;
/** The part of the limit that is kept in reserve. Once less than this is left, calls slow down. */
const reserve = 0.1;
/**
 * The slowest pace, as a part of the rate at which the provider grants new calls. It holds even if nothing is left of
 * the limit. A process must call now and then, because only an answer tells the process that calls are available again.
 */
const leastPace = 0.02;
/**
 * The longest pause between two calls, give or take a quarter. Without this limit, headers with a wrong value or
 * another unit would stop all calls for hours.
 */
const spacingMsMax = 60_000;

interface Quota {
  limit: number;
  remaining: number;
  perSecond: number;
  notedMs: number;
}

export function createRateBudget(
  now: () => number = () => performance.now(),
  random: () => number = Math.random,
): RateBudget {
  let quota: Quota | null = null;
  let freeAtMs = 0;
  return {
    admit: async (signal) => {
      if (quota === null) return;
      const nowMs = now();
      const left = leftNow(quota, nowMs);
      const fraction = left / (quota.limit * reserve);
      const waitMs = fraction >= 1 ? 0 : Math.max(freeAtMs, nowMs) - nowMs;
      if (waitMs > waitMsMax) throw spent(waitMs);
      quota = { ...quota, remaining: Math.max(0, left - 1), notedMs: nowMs };
      if (fraction >= 1) return;
      const paceMs = 1_000 / (quota.perSecond * Math.max(fraction, leastPace));
      const spacingMs = Math.min(spacingMsMax, paceMs) * (0.75 + random() / 2);
      freeAtMs = nowMs + waitMs + spacingMs;
      if (waitMs > 0) await wait(waitMs, undefined, { signal });
    },
    note: (answer) => {
      const noted = quotaOf(answer, now());
      if (noted !== null) quota = noted;
    },
  };
}

const leftNow = ({ limit, remaining, perSecond, notedMs }: Quota, nowMs: number): number =>
  Math.min(limit, remaining + (perSecond * (nowMs - notedMs)) / 1_000);

const spent = (waitMs: number): ComputeError =>
  new ComputeError('rate_limited', 'our share of the calls per hour is used up', {
    retryAfterSeconds: Math.ceil(waitMs / 1_000),
  });

function quotaOf({ status, headers }: Pick<HttpAnswer, 'status' | 'headers'>, nowMs: number): Quota | null {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
    Number(headers[`ratelimit-${name}`] ?? Number.NaN),
  );
  if (limit === undefined || remaining === undefined || !(limit > 0) || !(remaining >= 0)) return null;
  const left = status === 429 ? 0 : Math.min(remaining, limit);
  const untilFull = (reset ?? Number.NaN) - serverSeconds(headers);
  // The headers count whole seconds, so a rate computed from them is far off after few calls or just before the limit
  // is full again. In these cases the limit counts as calls per hour.
  const isTelling = untilFull > 2 && limit - left > 10;
  return { limit, remaining: left, perSecond: isTelling ? (limit - left) / untilFull : limit / 3_600, notedMs: nowMs };
}

/** The present time by the provider's clock, in seconds. This machine's clock may differ from it. */
function serverSeconds(headers: Readonly<Record<string, string>>): number {
  const date = Date.parse(headers['date'] ?? '');
  return (Number.isNaN(date) ? Date.now() : date) / 1_000;
}

/** The longest wait that the provider's headers can cause. */
const waitSecondsMax = 60;
const waitSecondsUsual = 5;

/**
 * The wait after a 429, in seconds from 1 to 60. Retry-After gives seconds or a date. Without Retry-After,
 * RateLimit-Reset gives the time. Without a readable header the wait is 5 seconds.
 */
export function retryAfterSeconds(headers: Readonly<Record<string, string>>): number {
  const asked = askedSeconds(headers);
  if (asked === null) return waitSecondsUsual;
  return Math.min(waitSecondsMax, Math.max(1, Math.ceil(asked)));
}

function askedSeconds(headers: Readonly<Record<string, string>>): number | null {
  const [retryAfter, reset] = [headers['retry-after'], headers['ratelimit-reset']];
  if (retryAfter !== undefined) {
    if (/^\d{1,15}$/.test(retryAfter)) return Number(retryAfter);
    const date = Date.parse(retryAfter);
    if (!Number.isNaN(date)) return date / 1_000 - serverSeconds(headers);
    return null;
  }
  return reset !== undefined && /^\d{1,15}$/.test(reset) ? Number(reset) - serverSeconds(headers) : null;
}
