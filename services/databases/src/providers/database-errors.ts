import { DatabaseHostError, type DatabaseHostErrorCode } from '@drydock/agent/database';
import { JobProblem } from '@drydock/agent/jobs';
import { ArchiveError, systemErrorCode } from '@drydock/archive';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import {
  archiveErrorIn,
  archiveErrorOfJob,
  archiveFailure,
  type ContentReason,
  conclude,
  type FailureReason,
  fail,
  isFinal,
  type StepFailure,
  shortReason,
} from '@drydock/workflow/definition';
import { DatabaseProviderError, type DatabaseRefusal } from './database-provider';

// An error of the database agent passes through two functions. `translated` turns it into a `DatabaseProviderError`,
// which names a refusal. `definitely` then turns most of these errors into the failure of the step.

const refusalOfControl: Partial<Record<DatabaseHostErrorCode, DatabaseRefusal>> = {
  unknown_database: 'unknown_database',
  unknown_upgrade: 'moved',
  upgrade_mismatch: 'moved',
  already_switched: 'switched',
  stale_fence: 'stale_fence',
  major_not_installed: 'major_not_installed',
  no_space: 'no_space',
};

/**
 * The refusal for each error code of a job. The codes of archive errors are missing, because `errorOfJob` turns a
 * problem with such a code into an ArchiveError first. A job that fails with any other code is repeated, because the
 * cause may be temporary, such as a lost connection.
 */
const refusalOfJob: Record<string, DatabaseRefusal | undefined> = {
  ...refusalOfControl,
  content_refused: 'content_refused',
  'upgrade.rights_differ': 'content_refused',
  'transfer.meta_command': 'archive_refused',
  'transfer.statement_refused': 'archive_refused',
  'transfer.extension_untrusted': 'archive_refused',
  'transfer.dump_malformed': 'archive_refused',
  'transfer.counts_differ': 'archive_refused',
};

const fullDiskCodes = new Set(['ENOSPC', 'EDQUOT']);

/** Whether a disk is full: the error or one of its causes is ENOSPC or EDQUOT. */
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
 * Turns a job's refusal of an archive into the ArchiveError that the job's program threw. Returns any other error
 * unchanged.
 */
const errorOfJob = (error: unknown): unknown =>
  error instanceof JobProblem ? (archiveErrorOfJob(error) ?? error) : error;

/** Turns errors that stand for a refusal into {@link DatabaseProviderError}s. Throws other errors unchanged. */
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

/**
 * The problem codes of the refusals for which `reasonOf` has no reason. A refusal without code and reason is thrown
 * unchanged, except for `unknown_database`, which `failureOf` handles first.
 */
const codeOf: Partial<Record<DatabaseRefusal, ProblemCode>> = {
  precheck_failed: 'upgrade_precheck_failed',
  major_not_installed: 'version_not_offered',
  moved: 'upgrade_failed',
};

/** The reason for a refusal of an archive or its content, or for a full disk; undefined for any other error. */
function reasonOf({ refusal, cause }: DatabaseProviderError, content: ContentReason): FailureReason | undefined {
  if (refusal === 'archive_refused') return archiveErrorIn(cause)?.reason ?? 'tampered';
  if (refusal === 'content_refused') return content;
  return refusal === 'no_space' ? refusal : undefined;
}

function failureOf(error: DatabaseProviderError, content: ContentReason): StepFailure | undefined {
  const { refusal, detail } = error;
  // Retrying cannot help if the database is gone, so its workflow ends even after the point of no return.
  if (refusal === 'unknown_database') return conclude('database_not_available', { internal: error.message });
  const findings =
    refusal === 'content_refused'
      ? [{ level: 'ERROR', code: 'statement_refused', detail: shortReason(detail) }]
      : error.findings;
  const told = findings.length > 0 ? { extra: { findings } } : {};
  const reason = reasonOf(error, content);
  if (reason !== undefined) return archiveFailure(reason, 'database_backup', error, told);
  const code = codeOf[refusal];
  return code === undefined ? undefined : fail(code, { ...told, internal: error.message, cause: error });
}

/**
 * Turns a refusal into the failure of the step if repeating the step cannot help. Throws other errors unchanged, so the
 * step is repeated. The refusal `switched` is thrown unchanged too, because the callers handle it. `content` is the
 * reason that the customer gets for `content_refused`: the content could not be packed, or could not be loaded.
 */
export function definitely<T>(work: Promise<T>, content: ContentReason = 'content_not_packed'): Promise<T> {
  return work.catch((error: unknown) => {
    throw error instanceof DatabaseProviderError ? (failureOf(error, content) ?? error) : error;
  });
}
