import type { ProblemCode } from '@drydock/contracts/problems';
import { fail } from '@drydock/workflow/step-error';
import { DatabaseProviderError, type DatabaseRefusal } from '../providers/database-provider';

const codeOf: Partial<Record<DatabaseRefusal, ProblemCode>> = {
  no_space: 'storage_full',
  archive_refused: 'backup_tampered',
  unknown_database: 'database_not_available',
  precheck_failed: 'upgrade_precheck_failed',
  major_not_installed: 'version_not_offered',
  moved: 'upgrade_failed',
};

/** The same work, with what no repetition can mend as the failure of the step; everything else may pass and is tried again. */
export function definitely<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    const code = error instanceof DatabaseProviderError ? codeOf[error.refusal] : undefined;
    if (code === undefined || !(error instanceof DatabaseProviderError)) throw error;
    const extra = error.findings.length === 0 ? {} : { extra: { findings: error.findings } };
    throw fail(code, { internal: error.message, cause: error, ...extra });
  });
}
