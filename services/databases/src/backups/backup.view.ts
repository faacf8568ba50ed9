import type { DatabaseBackup as View } from '@drydock/contracts/databases/database-backups';
import type { DatabaseBackup } from './backup.types';

export const viewBackup = ({
  id,
  kind,
  status,
  engineVersion: engine_version,
  archive,
  createdAt,
  completedAt,
}: DatabaseBackup): View => ({
  id,
  kind,
  status,
  engine_version,
  size_bytes: archive?.sizeBytes ?? null,
  created_at: createdAt.toISOString(),
  completed_at: completedAt?.toISOString() ?? null,
});
