import type { ProblemCode } from '@drydock/contracts/platform/problems';
import {
  archiveErrorIn,
  archiveFailure,
  type ContentReason,
  conclude,
  type FailureReason,
  fail,
  type StepFailure,
} from '@drydock/workflow/definition';
import { DatabaseProviderError, type DatabaseRefusal } from '../providers/database-provider';

/**
 * The problem codes of refusals that are not about an archive. A refusal that has neither a code nor a reason is thrown
 * on, so the step is repeated.
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
  // A database that is gone cannot be repaired, so its workflow ends even after the point of no return.
  if (refusal === 'unknown_database') return conclude('database_not_available', { internal: error.message });
  const findings =
    refusal === 'content_refused' ? [{ level: 'ERROR', code: 'statement_refused', detail }] : error.findings;
  const told = findings.length > 0 ? { extra: { findings } } : {};
  const reason = reasonOf(error, content);
  if (reason !== undefined) return archiveFailure(reason, 'database_backup', error, told);
  const code = codeOf[refusal];
  return code === undefined ? undefined : fail(code, { ...told, internal: error.message, cause: error });
}

/**
 * Turns permanent refusals of the provider into failures of the step. Other errors may be transient, so they are thrown
 * on and the step is repeated. `content` says whether refused content could not be packed or could not be loaded.
 */
export function definitely<T>(work: Promise<T>, content: ContentReason = 'content_not_packed'): Promise<T> {
  return work.catch((error: unknown) => {
    throw error instanceof DatabaseProviderError ? (failureOf(error, content) ?? error) : error;
  });
}
