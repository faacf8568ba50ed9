import { isDiskFull } from '@drydock/agent/jobs';
import { ArchiveError } from '@drydock/archive';
import {
  type ArchiveKind,
  archiveErrorIn,
  archiveFailure,
  type FailureReason,
  fail,
  type Refusal,
  type StepFailure,
  shortReason,
} from '@drydock/workflow/definition';
import { OffsiteError } from '../providers/offsite-storage';
import { type RefusedContent, SiteHostError } from '../providers/site-host';

function describeContent({ object, reason }: RefusedContent): string {
  const words = shortReason(reason);
  return object === null ? words : `${object}: ${words}`;
}

/** The refused object and the reason, for the customer. Empty if the error is not about content. */
function contentDetail(error: unknown): { detail?: string } {
  return error instanceof SiteHostError && error.content !== null ? { detail: describeContent(error.content) } : {};
}

/** The reason why an archive, its storage or its content is refused. Undefined for any other error. */
function reasonOf(error: unknown): FailureReason | undefined {
  if (error instanceof OffsiteError) return error.refusal;
  if (error instanceof ArchiveError) return error.reason;
  if (error instanceof SiteHostError) {
    const { refusal } = error;
    if (refusal === 'archive_refused') return archiveErrorIn(error)?.reason ?? 'tampered';
    return refusal === 'content_not_packed' || refusal === 'content_not_loaded' || refusal === 'no_space'
      ? refusal
      : undefined;
  }
  return isDiskFull(error) ? 'no_space' : undefined;
}

/**
 * The failure for those refusals of a host that `reasonOf` leaves out, such as a taken domain. Undefined for any other
 * error.
 */
function failureOfHost(error: unknown): StepFailure | undefined {
  if (!(error instanceof SiteHostError)) return undefined;
  const told = { internal: String(error), cause: error };
  if (error.refusal === 'unsupported') return fail('platform_unsupported', told);
  if (error.refusal === 'domain_taken') return fail('domain_in_use', told);
  if (error.refusal === 'database_not_offered') return fail('site_database_not_offered', told);
  return error.refusal === 'moved' || error.refusal === 'current' ? fail('step_failed', told) : undefined;
}

/** The failure of the step for a permanent error; undefined for a transient one. */
export function definiteFailure(error: unknown, kind: ArchiveKind): StepFailure | undefined {
  const reason = reasonOf(error);
  return reason === undefined ? failureOfHost(error) : archiveFailure(reason, kind, error, contentDetail(error));
}

/** Rejects with a failure that ends the workflow if `work` fails permanently. Other errors stay as they are. */
export function definitely<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw definiteFailure(error, 'site_backup') ?? error;
  });
}

const failureOf = ({ code, extra }: Refusal): StepFailure => fail(code, extra === undefined ? {} : { extra });

/** For a step that applies the rule of the request again: ends the workflow if the rule now refuses. */
export function assertStillAllowed(refusal: Refusal | null): void {
  if (refusal !== null) throw failureOf(refusal);
}
