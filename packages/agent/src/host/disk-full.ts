import { ArchiveError, systemErrorCode } from '@drydock/archive';

const fullDiskCodes = new Set(['53100', 'ENOSPC', 'EDQUOT', 'ER_DISK_FULL', 'ER_RECORD_FILE_FULL']);

/**
 * Whether an error, or one of its causes, means a full disk: 53100 in Postgres, ER_DISK_FULL in MySQL, ENOSPC or EDQUOT
 * in the file system.
 */
export function isDiskFull(error: unknown, depth = 0): boolean {
  if (fullDiskCodes.has(systemErrorCode(error))) return true;
  if (error instanceof ArchiveError && error.reason === 'no_space') return true;
  return depth < 5 && error instanceof Error && isDiskFull(error.cause, depth + 1);
}
