import type { SitePlatform, SiteStatus } from '@drydock/contracts/hosting/sites';
import { lookAgainAt } from '../backups/backup.rules';
import { isReady, unsupportedReasonOf } from '../sites/site.rules';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** The night lasts from midnight to six in UTC. */
const nightMinutes = 360;
/** The most backups that are tried in a night. A site whose backups all fail is left for the next night. */
const attemptsMax = 3;

/**
 * A site's minute of the night, computed from the random end of its id, so that the backups of all sites are spread
 * evenly over the night.
 */
export const slotMinute = (siteId: string): number => Number.parseInt(siteId.slice(-6), 16) % nightMinutes;

/** The start of the site's latest nightly slot. */
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
  /** Whether unfinished work has locked the site. */
  isBusy: boolean;
  /** Scheduled backups of the last two days. */
  scheduled: ReadonlyArray<{ createdAt: Date; hasFailed: boolean }>;
}

export interface NightlyDecision {
  /**
   * Whether a backup is begun now. True if every backup since the site's latest slot has failed, and the site is ready,
   * has no other work and has attempts left. The slot may be past, because no worker may have run at its time.
   */
  isDue: boolean;
  /** The time when a sweep next considers the site. */
  nextLookAt: Date;
}

export function decideNightly(
  { id, platform, status, createdAt, isBusy, scheduled }: SiteOfTheNight,
  now: Date,
): NightlyDecision {
  const turn = lastTurn(id, now);
  const nextTurn = new Date(turn.getTime() + dayMs);
  const since = scheduled.filter((backup) => backup.createdAt >= turn);
  const isOwed = createdAt < turn && since.every(({ hasFailed }) => hasFailed) && since.length < attemptsMax;
  if (unsupportedReasonOf(platform) !== '' || !isOwed) return { isDue: false, nextLookAt: nextTurn };
  if (!isReady(status) || isBusy) return { isDue: false, nextLookAt: lookAgainAt(now) };
  return { isDue: true, nextLookAt: nextTurn };
}
