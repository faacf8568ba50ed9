import { flavourOf, majorOf } from '@drydock/contracts/databases/major';
import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import type { DatabaseBackup } from '../backups/backup.types';
import { compareVersions, refuseUnavailable } from '../databases/database.rules';
import type { ManagedDatabase } from '../databases/database.types';

export interface RestoreWorld {
  managed: Pick<ManagedDatabase, 'status'>;
  unfinished: Pick<UnfinishedWorkflow, 'id' | 'status'> | null;
}

type Point = Pick<DatabaseBackup, 'status' | 'engineVersion' | 'archive'>;

/**
 * The reason why the database may not be replaced by the backup; null if it may be. The first reason in this order
 * counts: the backup does not exist, a workflow works on the database, the backup is not complete, the database is not
 * available.
 */
export function refuseRestore({ managed, unfinished }: RestoreWorld, backup: Point | null): Refusal | null {
  const isAtWork = backup === null ? null : refusalByWorkflow(unfinished);
  return isAtWork ?? refusePoint(backup) ?? refuseUnavailable(managed);
}

/** The reason against a restore that depends on the backup alone; null if there is none. */
export function refusePoint(backup: Point | null): Refusal | null {
  if (backup === null) return { code: 'backup_not_found' };
  return backup.status === 'completed' && backup.archive !== null ? null : { code: 'backup_not_completed' };
}

interface Origin {
  backup: Point | null;
  /** The storage of the database that the backup was taken from, in GB. */
  sourceGb: number;
}

/**
 * The reason why no new database of this version and storage (in GB) may be made from the backup; null if it may be
 * made. A backup can be loaded into its own major or a newer one of the same flavour.
 *
 * The unpacked bytes are only an estimate of what the content takes on disk: indexes come on top, and the engine may
 * compress values. A size is refused as too small only if it has less storage than the source, and less than the
 * unpacked content. A size with at least the storage of the source is enough, because the source has held the content.
 */
export function refuseOrigin(
  { backup, sourceGb }: Origin,
  { version, storageGb }: { version: string; storageGb: number },
): Refusal | null {
  const refusal = refusePoint(backup);
  if (refusal !== null || backup === null) return refusal;
  if (flavourOf(majorOf(version)) !== flavourOf(majorOf(backup.engineVersion))) return { code: 'engine_differs' };
  if (compareVersions(version, backup.engineVersion) < 0) return { code: 'backup_version_newer' };
  const rawBytes = backup.archive?.rawBytes ?? 0;
  return storageGb < sourceGb && rawBytes > storageGb * 1e9 ? { code: 'size_too_small' } : null;
}
