import { serverSeconds } from './rate-budget';

/** A longer wait than this is not granted. */
const waitSecondsMax = 60;
const waitSecondsUsual = 5;

/**
 * The wait after a 429 or 503: Retry-After in seconds or as a date, otherwise RateLimit-Reset; absurd values are
 * ignored. 1 to 60.
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
