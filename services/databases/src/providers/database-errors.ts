import { DatabaseHostError, type DatabaseHostErrorCode } from '@drydock/agent/database/database-host-error';
import { JobProblem } from '@drydock/agent/jobs/job-protocol';
import { ArchiveError, systemErrorCode } from '@drydock/archive/format/archive-error';
import { DatabaseProviderError, type DatabaseRefusal } from './database-provider';

const refusalOfControl: Partial<Record<DatabaseHostErrorCode, DatabaseRefusal>> = {
  unknown_database: 'unknown_database',
  unknown_upgrade: 'moved',
  upgrade_mismatch: 'moved',
  already_switched: 'switched',
  stale_fence: 'stale_fence',
  major_not_installed: 'major_not_installed',
};

/** The refusals by a job's error code that no repetition makes better. The other codes may be a connection that was lost. */
const refusalOfJob: Record<string, DatabaseRefusal | undefined> = {
  ...refusalOfControl,
  no_space: 'no_space',
  content_refused: 'content_refused',
  'upgrade.rights_differ': 'content_refused',
  'transfer.meta_command': 'archive_refused',
  'transfer.statement_refused': 'archive_refused',
  'transfer.extension_untrusted': 'archive_refused',
  'transfer.dump_malformed': 'archive_refused',
  'transfer.counts_differ': 'archive_refused',
};

const fullDiskCodes = new Set(['ENOSPC', 'EDQUOT']);
const passingReasons = ['write_failed', 'source_unreadable'];

/** The file system of the backups says ENOSPC or EDQUOT, wrapped or not. */
function isDiskFull(error: unknown, depth = 0): boolean {
  if (fullDiskCodes.has(systemErrorCode(error))) return true;
  return depth < 5 && error instanceof Error && isDiskFull(error.cause, depth + 1);
}

/** @param reason of an ArchiveError */
function refusalOfArchive(reason: string): DatabaseRefusal | undefined {
  if (reason === 'no_space') return 'no_space';
  return passingReasons.includes(reason) ? undefined : 'archive_refused';
}

function refusalOf(error: unknown): DatabaseRefusal | undefined {
  if (error instanceof DatabaseHostError) return refusalOfControl[error.code];
  if (error instanceof JobProblem) {
    const [, reason] = /^archive\.(.+)$/.exec(error.code) ?? [];
    return reason === undefined ? refusalOfJob[error.code] : refusalOfArchive(reason);
  }
  if (isDiskFull(error)) return 'no_space';
  return error instanceof ArchiveError ? refusalOfArchive(error.reason) : undefined;
}

/** The same work, with what no repetition can mend as a {@link DatabaseProviderError}. */
export function translated<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    const refusal = refusalOf(error);
    throw refusal === undefined
      ? error
      : new DatabaseProviderError(refusal, error instanceof Error ? error.message : String(error), { cause: error });
  });
}

/** What the reader says of an instance that does not answer. */
export function unavailableIfDown<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (error instanceof DatabaseHostError && error.code === 'instance_down')
      throw new DatabaseProviderError('unavailable', error.message, { cause: error });
    throw error;
  });
}

export function unknownAsNull<T>(work: Promise<T>): Promise<T | null> {
  return work.catch((error: unknown) => {
    if (error instanceof DatabaseHostError && error.code === 'unknown_database') return null;
    throw error;
  });
}
