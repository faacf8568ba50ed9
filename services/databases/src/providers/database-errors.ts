import { DatabaseHostError, type DatabaseHostErrorCode } from '@drydock/agent/database';
import { JobProblem } from '@drydock/agent/jobs';
import { ArchiveError, systemErrorCode } from '@drydock/archive';
import { archiveErrorOfJob, isFinal } from '@drydock/workflow/definition';
import { DatabaseProviderError, type DatabaseRefusal } from './database-provider';

const refusalOfControl: Partial<Record<DatabaseHostErrorCode, DatabaseRefusal>> = {
  unknown_database: 'unknown_database',
  unknown_upgrade: 'moved',
  upgrade_mismatch: 'moved',
  already_switched: 'switched',
  stale_fence: 'stale_fence',
  major_not_installed: 'major_not_installed',
};

/**
 * The refusal for each error code of a job that is permanent. A job with another code is repeated, because the cause
 * may be a lost connection.
 */
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

/** Whether the disk of the backups is full: ENOSPC or EDQUOT in the error or in one of its causes. */
function isDiskFull(error: unknown, depth = 0): boolean {
  if (fullDiskCodes.has(systemErrorCode(error))) return true;
  return depth < 5 && error instanceof Error && isDiskFull(error.cause, depth + 1);
}

function refusalOf(error: unknown, isPacking: boolean): DatabaseRefusal | undefined {
  if (error instanceof DatabaseHostError) return refusalOfControl[error.code];
  if (error instanceof ArchiveError) {
    if (error.reason === 'no_space') return 'no_space';
    // The content of the database exceeds a limit of archives, so every attempt would fail.
    if (isPacking && error.reason === 'limit_exceeded') return 'content_refused';
    return isFinal(error.reason) ? 'archive_refused' : undefined;
  }
  if (error instanceof JobProblem) return refusalOfJob[error.code];
  return isDiskFull(error) ? 'no_space' : undefined;
}

/**
 * Turns a job's refusal of an archive into the ArchiveError that the job's program threw. Returns any other error as it
 * is.
 */
const errorOfJob = (error: unknown): unknown =>
  error instanceof JobProblem ? (archiveErrorOfJob(error) ?? error) : error;

/** Turns the errors of the agent that name a refusal into {@link DatabaseProviderError}s. */
export function translated<T>(work: Promise<T>, { isPacking = false } = {}): Promise<T> {
  return work.catch((thrown: unknown) => {
    const error = errorOfJob(thrown);
    const refusal = refusalOf(error, isPacking);
    if (refusal === undefined) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new DatabaseProviderError(refusal, message, { cause: error });
  });
}

/** Turns the agent's error for an instance that does not answer into the refusal `unavailable`. */
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
