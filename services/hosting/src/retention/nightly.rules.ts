import type { SitePlatform, SiteStatus } from '@drydock/contracts/hosting/sites';
import { lookAgainAt } from '../backups/backup.rules';
import { isReady, unsupportedReasonOf } from '../sites/site.rules';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** The night lasts from midnight to six in UTC. */
const nightMinutes = 360;
/** The most backups that are begun for one slot. If all of them fail, the site waits for its next slot. */
const attemptsMax = 3;

/**
 * The minute of the night at which the slot of a site begins. The random end of the site's id determines the minute, so
 * that the backups of all sites are spread over the night.
 */
export const slotMinute = (siteId: string): number => Number.parseInt(siteId.slice(-6), 16) % nightMinutes;

export function lastSlot(siteId: string, now: Date): Date {
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
  /** The scheduled backups of the last two days. */
  scheduled: ReadonlyArray<{ createdAt: Date; hasFailed: boolean }>;
}

export interface NightlyDecision {
  /** Whether a backup is to begin now. The slot may have begun hours ago, for example if no worker ran then. */
  isDue: boolean;
  /** The time at which `sweep_backups` next considers the site. */
  nextLookAt: Date;
}

export function decideNightly(
  { id, platform, status, createdAt, isBusy, scheduled }: SiteOfTheNight,
  now: Date,
): NightlyDecision {
  const slot = lastSlot(id, now);
  const nextSlot = new Date(slot.getTime() + dayMs);
  const since = scheduled.filter((backup) => backup.createdAt >= slot);
  const isOwed = createdAt < slot && since.every(({ hasFailed }) => hasFailed) && since.length < attemptsMax;
  if (unsupportedReasonOf(platform) !== '' || !isOwed) return { isDue: false, nextLookAt: nextSlot };
  if (!isReady(status) || isBusy) return { isDue: false, nextLookAt: lookAgainAt(now) };
  return { isDue: true, nextLookAt: nextSlot };
}
