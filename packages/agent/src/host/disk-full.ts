import { ArchiveError, systemErrorCode } from '@drydock/archive/format/archive-error';

const fullDiskCodes = new Set(['53100', 'ENOSPC', 'EDQUOT', 'ER_DISK_FULL', 'ER_RECORD_FILE_FULL']);

/** Postgres says 53100 when its disk is full, MySQL ER_DISK_FULL, the file system ENOSPC or EDQUOT, wrapped or not. */
export function isDiskFull(error: unknown, depth = 0): boolean {
  if (fullDiskCodes.has(systemErrorCode(error))) return true;
  if (error instanceof ArchiveError && error.reason === 'no_space') return true;
  return depth < 5 && error instanceof Error && isDiskFull(error.cause, depth + 1);
}
