import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { SitePlatform } from '@drydock/contracts/hosting/sites';

export type ImmutabilityReason = SiteBackupSurface['immutability_reason'];
export type RestoreDrillReason = SiteBackupSurface['restore_drill_reason'];

/** The result of the latest check. `reason` is '' when it passed. */
interface Finding<Reason extends string> {
  reason: Reason;
  finishedAt: Date;
}

export interface BackupProofs {
  /** Whether backups of the site's mode are kept in object storage. */
  isOffsiteEnabled: boolean;
  /** The newest check of the storage that is in use. Null if there was none. */
  immutability: Finding<ImmutabilityReason> | null;
  /** The last time that the current storage refused to delete a locked object. */
  refusedAt: Date | null;
  drill: Finding<RestoreDrillReason> | null;
}

const hourMs = 3_600_000;
/**
 * The age up to which a check of the storage counts as recent. The check runs daily, and may be a day late
 * (decisions.md 3).
 */
const immutabilityAgeMaxMs = 48 * hourMs;
/** A drill runs weekly and may be two days late, so a result of the last nine days is recent. */
const drillAgeMaxMs = 9 * 24 * hourMs;

interface ImmutabilityClaim {
  isImmutable: boolean;
  verifiedAt: Date | null;
  reason: ImmutabilityReason;
}

/**
 * Immutability is claimed only if the newest check passed and is recent. A failed check cancels every earlier proof.
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
 * The platforms whose backups are drilled. Only on these platforms does Drydock have its own site for drills and rows
 * that can be counted beforehand.
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
 * A passed drill is repeated after `passedAgeMinDays` days. A failed drill is repeated at the next run of the schedule.
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
