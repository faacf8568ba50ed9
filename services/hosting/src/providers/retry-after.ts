/** Limit for a wait that a provider asks for, in seconds. */
const retryAfterSecondsMax = 60;
const usualSeconds = 2;

/**
 * Seconds to wait by a Retry-After header: seconds or a date, at least 1 and within reason; a usual pause when it is
 * missing or makes no sense.
 */
export function retryAfterSecondsOf(header: string | string[] | undefined, nowMs: number = Date.now()): number {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? '';
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - nowMs) / 1_000;
  return Number.isFinite(seconds) ? Math.min(retryAfterSecondsMax, Math.max(1, Math.ceil(seconds))) : usualSeconds;
}
