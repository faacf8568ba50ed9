import { ArchiveError, type ArchiveReason } from '@drydock/archive/format/archive-error';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import type { Refusal } from '@drydock/workflow/definition/refusal.rules';
import { fail, type StepFailure } from '@drydock/workflow/definition/step-error';
import { type RefusedContent, SiteHostError, type SiteHostRefusal } from '../providers/site-host';

/** What a refused archive is to the customer; reasons that are left out may pass and are tried again. */
const codeOfArchive: Partial<Record<ArchiveReason, ProblemCode>> = {
  tampered: 'backup_tampered',
  truncated: 'backup_tampered',
  wrong_key: 'backup_tampered',
  foreign: 'backup_tampered',
  replayed_older: 'backup_tampered',
  chain_gap: 'backup_tampered',
  chain_cycle: 'backup_tampered',
  mismatch: 'backup_tampered',
  unsupported_format: 'backup_tampered',
  hostile_entry: 'backup_tampered',
  unknown_root: 'backup_tampered',
  limit_exceeded: 'backup_tampered',
  no_space: 'storage_full',
};

const codeOfHost: Partial<Record<SiteHostRefusal, ProblemCode>> = {
  archive_refused: 'backup_tampered',
  content_not_packed: 'site_content_refused',
  content_not_loaded: 'backup_content_refused',
  no_space: 'storage_full',
  moved: 'step_failed',
  current: 'step_failed',
  unsupported: 'platform_unsupported',
  domain_taken: 'domain_in_use',
};

/** Postgres' words may quote a whole statement. */
const reasonCharsMax = 500;

function describeContent({ object, reason }: RefusedContent): string {
  const words = reason.length > reasonCharsMax ? `${reason.slice(0, reasonCharsMax)}…` : reason;
  return object === null ? words : `${object}: ${words}`;
}

/** For the customer: which of their objects is refused, and why. Empty where the error is about none. */
export function contentDetail(error: unknown): { detail?: string } {
  return error instanceof SiteHostError && error.content !== null ? { detail: describeContent(error.content) } : {};
}

/** The failure that no repetition mends, or undefined for an error that may pass. */
export function definiteFailure(error: unknown): StepFailure | undefined {
  const code =
    error instanceof ArchiveError ? codeOfArchive[error.reason] : error instanceof SiteHostError ? codeOfHost[error.refusal] : undefined;
  return code === undefined ? undefined : fail(code, { ...contentDetail(error), internal: String(error), cause: error });
}

/** The same work, whose refusals that no repetition can mend end the workflow. */
export function definitely<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw definiteFailure(error) ?? error;
  });
}

/** A rule's refusal, asked again by a workflow: it ends it. */
export const failureOf = ({ code, extra }: Refusal): StepFailure => fail(code, extra === undefined ? {} : { extra });

export function assertStillAllowed(refusal: Refusal | null): void {
  if (refusal !== null) throw failureOf(refusal);
}
