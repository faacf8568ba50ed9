import type { SitePlatform, SiteStatus } from '@drydock/contracts/hosting/sites';
import { isReady, unsupportedReasonOf } from '../sites/site.rules';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** From midnight to six in UTC. */
const nightMinutes = 360;
/** A site whose backups keep failing is left for the next night. */
const attemptsMax = 3;

/** When a site's turn comes, in minutes of the night: by the random end of its id, so that all sites together load the night evenly. */
export const slotMinute = (siteId: string): number => Number.parseInt(siteId.slice(-6), 16) % nightMinutes;

/** The last time that the site's turn came. */
export function lastTurn(siteId: string, now: Date): Date {
  const midnight = Math.floor(now.getTime() / dayMs) * dayMs;
  const today = midnight + slotMinute(siteId) * minuteMs;
  return new Date(today <= now.getTime() ? today : today - dayMs);
}

export interface SiteOfTheNight {
  id: string;
  platform: SitePlatform;
  status: SiteStatus;
  createdAt: Date;
  /** Whether unfinished work holds it. */
  isBusy: boolean;
  /** Scheduled backups of the last two days. */
  scheduled: ReadonlyArray<{ createdAt: Date; hasFailed: boolean }>;
}

/** Whether the site's nightly backup can be begun: its turn has come, also while nobody was there to see it, and none was taken since. */
export function isDue({ id, platform, status, createdAt, isBusy, scheduled }: SiteOfTheNight, now: Date): boolean {
  if (unsupportedReasonOf(platform) !== '' || !isReady(status) || isBusy) return false;
  const turn = lastTurn(id, now);
  const since = scheduled.filter((backup) => backup.createdAt >= turn);
  return createdAt < turn && since.every(({ hasFailed }) => hasFailed) && since.length < attemptsMax;
}
