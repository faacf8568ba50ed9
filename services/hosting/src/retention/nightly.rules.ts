import type { SitePlatform, SiteStatus } from '@drydock/contracts/hosting/sites';
import { lookAgainAt } from '../backups/backup.rules';
import { isReady, unsupportedReasonOf } from '../sites/site.rules';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** The night lasts from midnight to six in UTC. */
const nightMinutes = 360;
/** The most attempts in a night. A site whose backups all fail waits for the next night. */
const attemptsMax = 3;

/**
 * The slot of a site is this minute of the night. It follows from the random end of its id, so that the backups of all
 * sites are spread over the night.
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
  /** Whether a backup is begun now. The slot may have passed hours ago, if no worker ran at that time. */
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
