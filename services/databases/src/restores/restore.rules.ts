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
 * The reason why the database may not be replaced by the backup; null if it may. The first reason counts, in this
 * order: the backup does not exist, a workflow works on the database, the state of the backup, the state of the
 * database.
 */
export function refuseRestore({ managed, unfinished }: RestoreWorld, backup: Point | null): Refusal | null {
  const isAtWork = backup === null ? null : refusalByWorkflow(unfinished);
  return isAtWork ?? refusePoint(backup) ?? refuseUnavailable(managed);
}

/** The reasons against a restore that depend on the backup alone. */
export function refusePoint(backup: Point | null): Refusal | null {
  if (backup === null) return { code: 'backup_not_found' };
  return backup.status === 'completed' && backup.archive !== null ? null : { code: 'backup_not_completed' };
}

/**
 * The reason why no new database of this version may be made from the backup; null if it may. A dump is loaded by its
 * own major or a newer one of the same engine and flavour.
 */
export function refuseOrigin(backup: Point | null, version: string): Refusal | null {
  const refusal = refusePoint(backup);
  if (refusal !== null || backup === null) return refusal;
  if (flavourOf(majorOf(version)) !== flavourOf(majorOf(backup.engineVersion))) return { code: 'engine_differs' };
  return compareVersions(version, backup.engineVersion) < 0 ? { code: 'backup_version_newer' } : null;
}

/** The factor for indexes and the write-ahead log, which upgrades use too, and the bytes of an empty instance. */
const overheadFactor = 2.2;
const instanceBytes = 128 * 2 ** 20;

/** The bytes that the restored instance needs beside the serving one. */
export const neededBytes = (rawBytes: number): number => Math.ceil(rawBytes * overheadFactor) + instanceBytes;
