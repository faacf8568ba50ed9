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

/**
 * The reason why no new database of this version may be made from the backup; null if it may be made. A backup can be
 * loaded into its own major or a newer one of the same flavour.
 */
export function refuseOrigin(backup: Point | null, version: string): Refusal | null {
  const refusal = refusePoint(backup);
  if (refusal !== null || backup === null) return refusal;
  if (flavourOf(majorOf(version)) !== flavourOf(majorOf(backup.engineVersion))) return { code: 'engine_differs' };
  return compareVersions(version, backup.engineVersion) < 0 ? { code: 'backup_version_newer' } : null;
}

/**
 * A restored instance needs `overheadFactor` times the unpacked size, for indexes and the write-ahead log, plus
 * `instanceBytes` for an empty instance. Upgrades use the same factor.
 */
const overheadFactor = 2.2;
const instanceBytes = 128 * 2 ** 20;

/** The bytes that the restored instance needs beside the serving one. */
export const neededBytes = (rawBytes: number): number => Math.ceil(rawBytes * overheadFactor) + instanceBytes;
