import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import type { BackupProofs, ImmutabilityReason, RestoreDrillReason } from './proof.types';

const hourMs = 3_600_000;
/** decisions.md 3: "recently" is twice the interval for the canary, which comes daily … */
const immutabilityAgeMaxMs = 48 * hourMs;
/** … and a week and two days for the drill. */
const drillAgeMaxMs = 9 * 24 * hourMs;

export interface ImmutabilityClaim {
  isImmutable: boolean;
  verifiedAt: Date | null;
  reason: ImmutabilityReason;
}

/** Claimed only while the newest check was the proof and is recent: whatever a later one found, the proof before it counts for nothing. */
export function immutabilityOf({ immutability, refusedAt }: BackupProofs, now: Date): ImmutabilityClaim {
  const reason = reasonOf(immutability, 'never_checked', immutabilityAgeMaxMs, now);
  return { isImmutable: reason === '', verifiedAt: refusedAt, reason };
}

export interface DrillClaim {
  hasPassed: boolean;
  finishedAt: Date | null;
  reason: RestoreDrillReason;
}

/** Whose backups are drilled. Only these have a site of the platform's own that they can be restored onto, and rows that can be counted before it. */
export const drilledPlatforms: readonly SitePlatform[] = ['local'];

/**
 * What a drill has proven for the backups of a site on `platform`: what was proven of another platform's restores says nothing about this
 * one's.
 */
export function restoreDrillOf({ drill }: BackupProofs, platform: SitePlatform, now: Date): DrillClaim {
  if (!drilledPlatforms.includes(platform)) return { hasPassed: false, finishedAt: null, reason: 'no_drill_site' };
  const reason = reasonOf(drill, 'never_drilled', drillAgeMaxMs, now);
  return { hasPassed: reason === '', finishedAt: drill?.finishedAt ?? null, reason };
}

/** A passed drill is good for a while; one that did not pass is tried again at the next occasion. */
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
