const minuteMs = 60_000;
/** The pause before the next check, as a share of the time that the site has waited already. */
const share = 1 / 20;
const pauseMsMax = 60 * minuteMs;

/** When a site that came back `since` then is asked again whether it serves: every minute at first, every hour for one that nobody mends. */
export function nextServeCheck(now: Date, since: Date): Date {
  const waitedMs = now.getTime() - since.getTime();
  return new Date(now.getTime() + Math.min(pauseMsMax, Math.max(minuteMs, waitedMs * share)));
}
