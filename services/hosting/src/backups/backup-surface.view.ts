import { immutableDays, type SiteBackupSurface } from '@drydock/contracts/backups';
import type { UnfinishedWorkflow } from '@drydock/workflow/unfinished.types';
import { immutabilityOf, restoreDrillOf } from '../proofs/proof.rules';
import type { BackupProofs } from '../proofs/proof.types';
import { retentionDaysOf, unsupportedReasonOf } from '../sites/site.rules';
import type { Site } from '../sites/site.types';
import { allowanceOf, refuseBackup } from './backup.rules';
import type { Backup } from './backup.types';
import { viewBackup } from './backup.view';

export interface SurfaceFacts {
  site: Site;
  /** All of the site's, newest first. */
  backups: readonly Backup[];
  unfinished: UnfinishedWorkflow | null;
  proofs: BackupProofs;
}

/** Whatever takes a backup of the site or overwrites it with one. */
const kindsShown: readonly string[] = ['take_backup', 'restore_backup', 'restore_offsite', 'restore_deleted_site', 'delete_site'];

/** interface.md 2.2. Nothing is claimed that was not proved, and recently. */
export function viewSurface({ site, backups, unfinished, proofs }: SurfaceFacts, now: Date): SiteBackupSurface {
  const allowance = allowanceOf(backups, now);
  const [immutability, drill] = [immutabilityOf(proofs, now), restoreDrillOf(proofs, site.platform, now)];
  return {
    site_id: site.id,
    backups: backups.map((backup) => viewBackup(backup, now)),
    can_backup: refuseBackup({ site, unfinished }, allowance, now) === null,
    in_progress: unfinished !== null && unfinished.status !== 'needs_attention' && kindsShown.includes(unfinished.kind),
    on_demand_backups: true,
    unsupported_reason: unsupportedReasonOf(site.platform),
    on_demand_limit: allowance.limit,
    on_demand_used: allowance.used,
    on_demand_remaining: allowance.remaining,
    on_demand_next_at: allowance.nextAt?.toISOString() ?? null,
    daily_backups: site.dailyBackups,
    retention_days: retentionDaysOf(site),
    offsite_enabled: proofs.isOffsiteEnabled,
    immutable: immutability.isImmutable,
    immutable_days: immutableDays,
    immutability_verified_at: immutability.verifiedAt?.toISOString() ?? null,
    immutability_reason: immutability.reason,
    restore_drill_passed: drill.hasPassed,
    restore_drill_at: drill.finishedAt?.toISOString() ?? null,
    restore_drill_reason: drill.reason,
  };
}
