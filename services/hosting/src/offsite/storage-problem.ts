import { isDiskFull } from '@drydock/agent/host/disk-full';
import { ArchiveError, type ArchiveReason } from '@drydock/archive/format/archive-error';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { fail, StepFailure } from '@drydock/workflow/definition/step-error';
import { contentDetail } from '../backups/definite-failure';
import { OffsiteError, type OffsiteRefusal } from '../providers/offsite-storage';
import { SiteHostError, type SiteHostRefusal } from '../providers/site-host';

export const codeOfRefusal = {
  endpoint_refused: 'offsite_endpoint_refused',
  credentials_rejected: 'offsite_credentials_rejected',
  bucket_unusable: 'offsite_bucket_unusable',
} as const satisfies Record<OffsiteRefusal, ProblemCode>;

const codeOfHost: Partial<Record<SiteHostRefusal, ProblemCode>> = {
  archive_refused: 'copy_tampered',
  content_not_packed: 'site_content_refused',
  content_not_loaded: 'backup_content_refused',
  no_space: 'storage_full',
};

/** A storage that does not answer, as the caller gets it: 503, and when to try again (decisions.md 1). */
export const storageUnavailable = { extra: { dependency: 'customer_storage' }, retryAfterSeconds: 60 } as const;

/** Not the fault of what was read: the disk, the host, a file that changed under the hands of its owner. */
const mayPass: readonly ArchiveReason[] = ['write_failed', 'source_unreadable', 'staging_not_empty'];

/** What an error of a customer's storage or of a copy is to the customer; undefined for one that may pass. */
function definiteCode(error: unknown): ProblemCode | undefined {
  if (error instanceof OffsiteError) return codeOfRefusal[error.refusal];
  if (error instanceof SiteHostError) {
    return codeOfHost[error.refusal];
  }
  if (error instanceof ArchiveError) {
    if (error.reason === 'no_space') return 'storage_full';
    return mayPass.includes(error.reason) ? undefined : 'copy_tampered';
  }
  return isDiskFull(error) ? 'storage_full' : undefined;
}

/**
 * Work of a step on a customer's storage. What no repetition mends fails for good; anything else is tried again, and what fails at the last
 * attempt is the storage's not being there.
 */
export async function onStorage<T>(
  step: { attempt: number; signal: AbortSignal },
  attemptsMax: number,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StepFailure) throw error;
    const code = definiteCode(error);
    if (code !== undefined) throw fail(code, { ...contentDetail(error), internal: String(error), cause: error });
    if (step.signal.aborted || step.attempt < attemptsMax) throw error;
    throw fail('dependency_unavailable', { extra: storageUnavailable.extra, internal: String(error), cause: error });
  }
}
