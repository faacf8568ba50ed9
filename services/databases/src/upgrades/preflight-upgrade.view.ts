import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { DatabaseBackup } from '../backups/backup.types';
import type { ManagedDatabase } from '../databases/database.types';
import { databasePath } from '../databases/database-names';
import type { UpgradePlan } from '../providers/database-provider';

export interface UpgradeFacts {
  managed: ManagedDatabase;
  target: string;
  /** Null if there is no such target version, or no instance to ask. */
  plan: UpgradePlan | null;
  /** The newest completed one. */
  backup: DatabaseBackup | null;
  now: Date;
}

/** The preflight as the caller sees it. It says that nothing undoes an upgrade after its cutover. */
export function viewPreflight(
  { managed, target, plan, backup, now }: UpgradeFacts,
  refusal: Preflight['refusal'],
): Preflight {
  const takenAt = backup?.completedAt ?? null;
  return {
    would: sentenceOf(managed, target, plan),
    resource: databasePath(managed.id),
    point:
      backup === null || takenAt === null
        ? null
        : {
            id: backup.id,
            taken_at: takenAt.toISOString(),
            age_seconds: Math.max(0, Math.floor((now.getTime() - takenAt.getTime()) / 1_000)),
          },
    space: plan === null ? null : { needed_bytes: plan.neededBytes, free_bytes: plan.freeBytes },
    refusal,
    findings: plan === null ? [] : plan.findings.map(({ level, code, detail }) => ({ level, code, detail })),
    undo: false,
  };
}

function sentenceOf({ label, engineVersion }: ManagedDatabase, target: string, plan: UpgradePlan | null): string {
  const move = `${label} would be moved from ${engineVersion} to ${target} behind its address`;
  if (plan === null) return `${move}.`;
  return plan.path === 'logical'
    ? `${move}, with a fresh backup first; clients write on, and pause for less than a second at the end.`
    : `${move}, with a fresh backup first; clients wait for about ${plan.pauseSeconds} s while the data is copied.`;
}
