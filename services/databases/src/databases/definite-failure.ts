import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { fail } from '@drydock/workflow/definition/step-error';
import { DatabaseProviderError, type DatabaseRefusal } from '../providers/database-provider';

const codeOf: Partial<Record<DatabaseRefusal, ProblemCode>> = {
  no_space: 'storage_full',
  archive_refused: 'backup_tampered',
  unknown_database: 'database_not_available',
  precheck_failed: 'upgrade_precheck_failed',
  major_not_installed: 'version_not_offered',
  moved: 'upgrade_failed',
  content_refused: 'database_content_refused',
};

/** The same work, with what no repetition can mend as the failure of the step; everything else may pass and is tried again. `codes`: those of this work's own. */
export function definitely<T>(work: Promise<T>, codes: typeof codeOf = {}): Promise<T> {
  return work.catch((error: unknown) => {
    const code = error instanceof DatabaseProviderError ? (codes[error.refusal] ?? codeOf[error.refusal]) : undefined;
    if (code === undefined || !(error instanceof DatabaseProviderError)) throw error;
    const findings =
      error.refusal === 'content_refused' ? [{ level: 'ERROR', code: 'statement_refused', detail: error.detail }] : error.findings;
    throw fail(code, { internal: error.message, cause: error, ...(findings.length > 0 && { extra: { findings } }) });
  });
}
