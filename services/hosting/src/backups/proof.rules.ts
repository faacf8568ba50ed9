import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { SitePlatform } from '@drydock/contracts/hosting/sites';

export type ImmutabilityReason = SiteBackupSurface['immutability_reason'];
export type RestoreDrillReason = SiteBackupSurface['restore_drill_reason'];

/** The result of a check. `reason` is '' if the check passed. */
interface Finding<Reason extends string> {
  reason: Reason;
  finishedAt: Date;
}

export interface BackupProofs {
  /** Whether backups of the site's mode are kept in object storage. */
  isOffsiteEnabled: boolean;
  /** The newest check of the storage in use. Null if that storage was never checked. */
  immutability: Finding<ImmutabilityReason> | null;
  /** The last time that the storage in use refused to delete a locked object. */
  refusedAt: Date | null;
  drill: Finding<RestoreDrillReason> | null;
}

const hourMs = 3_600_000;
/** A check of the storage counts as recent for 48 hours: checks run daily, and may be a day late (decisions.md 3). */
const immutabilityAgeMaxMs = 48 * hourMs;
/** A drill counts as recent for nine days: drills run weekly, and may be two days late. */
const drillAgeMaxMs = 9 * 24 * hourMs;

interface ImmutabilityClaim {
  isImmutable: boolean;
  verifiedAt: Date | null;
  reason: ImmutabilityReason;
}

/**
 * Claims immutability only if the newest check passed and is recent. So a failed check cancels every earlier proof.
 * `verifiedAt` stays the time of the last refused delete.
 */
export function immutabilityOf({ immutability, refusedAt }: BackupProofs, now: Date): ImmutabilityClaim {
  const reason = reasonOf(immutability, 'never_checked', immutabilityAgeMaxMs, now);
  return { isImmutable: reason === '', verifiedAt: refusedAt, reason };
}

interface DrillClaim {
  hasPassed: boolean;
  finishedAt: Date | null;
  reason: RestoreDrillReason;
}

/**
 * The platforms whose backups are drilled. Only archives of these platforms tell how many rows each table has, and only
 * on these platforms can a drill count the rows of the restored site.
 */
export const drilledPlatforms: readonly SitePlatform[] = ['local'];

/**
 * The drill's result for the backups of a site on `platform`. A drill on one platform proves nothing about restores on
 * another platform.
 */
export function restoreDrillOf({ drill }: BackupProofs, platform: SitePlatform, now: Date): DrillClaim {
  if (!drilledPlatforms.includes(platform)) return { hasPassed: false, finishedAt: null, reason: 'no_drill_site' };
  const reason = reasonOf(drill, 'never_drilled', drillAgeMaxMs, now);
  return { hasPassed: reason === '', finishedAt: drill?.finishedAt ?? null, reason };
}

/**
 * Whether a drill is due: at once if there was none or the last one failed, otherwise after `passedAgeMinDays` days.
 */
export function isDrillDue(drill: BackupProofs['drill'], passedAgeMinDays: number, now: Date): boolean {
  if (drill === null || drill.reason !== '') return true;
  return now.getTime() - drill.finishedAt.getTime() >= passedAgeMinDays * 24 * hourMs;
}

function reasonOf<Reason extends string, Never extends string>(
  finding: { reason: Reason; finishedAt: Date } | null,
  never: Never,
  ageMaxMs: number,
  now: Date,
): Reason | Never | 'stale' {
  if (finding === null) return never;
  if (finding.reason !== '') return finding.reason;
  return now.getTime() - finding.finishedAt.getTime() > ageMaxMs ? 'stale' : finding.reason;
}
