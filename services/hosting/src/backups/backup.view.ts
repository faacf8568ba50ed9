import type { SiteBackup } from '@drydock/contracts/hosting/backups';
import { statusAt } from './backup.rules';
import type { Backup } from './backup.types';

const timestamp = (at: Date | null): string | null => at?.toISOString() ?? null;

/** SiteBackup of decisions.md 3. */
export function viewBackup(backup: Backup, now: Date): SiteBackup {
  const status = statusAt(backup, now);
  return {
    id: backup.id,
    site_id: backup.siteId,
    kind: backup.kind,
    status,
    restorable: status === 'completed',
    includes: { files: backup.includesFiles, database: backup.includesDatabase },
    skipped: backup.skipped,
    size_bytes: backup.archive?.sizeBytes ?? null,
    checksum_sha256: backup.archive?.checksumSha256 ?? null,
    location: backup.location,
    created_at: backup.createdAt.toISOString(),
    completed_at: timestamp(backup.completedAt),
    expires_at: timestamp(backup.expiresAt),
    locked_until: timestamp(backup.lockedUntil),
    error_code: backup.errorCode,
  };
}
