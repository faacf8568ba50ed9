const minuteMs = 60_000;
/** The pause before the next check, as a share of the time that the site has waited already. */
const share = 1 / 20;
const pauseMsMax = 60 * minuteMs;

/**
 * The next time at which a site that came back at `since` is checked: every minute at first, every hour after a while.
 */
export function nextServeCheck(now: Date, since: Date): Date {
  const waitedMs = now.getTime() - since.getTime();
  return new Date(now.getTime() + Math.min(pauseMsMax, Math.max(minuteMs, waitedMs * share)));
}
