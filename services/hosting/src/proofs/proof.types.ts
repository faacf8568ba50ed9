import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';

export type ImmutabilityReason = SiteBackupSurface['immutability_reason'];
export type RestoreDrillReason = SiteBackupSurface['restore_drill_reason'];

/** The result of the latest check. `reason` is '' when it passed. */
export interface Finding<Reason extends string> {
  reason: Reason;
  finishedAt: Date;
}

export interface BackupProofs {
  /** Whether object storage is configured for this world. */
  isOffsiteEnabled: boolean;
  /** The newest check of the storage that is in use; null: there was none. */
  immutability: Finding<ImmutabilityReason> | null;
  /** The last time that a delete was attempted there and refused. */
  refusedAt: Date | null;
  drill: Finding<RestoreDrillReason> | null;
}
