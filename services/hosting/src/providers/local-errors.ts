import { isDiskFull, JobProblem } from '@drydock/agent/jobs';
import { SiteHostError as ControlError, type SiteHostErrorCode } from '@drydock/agent/site';
import { ArchiveError } from '@drydock/archive';
import { archiveErrorOfJob, isFinal } from '@drydock/workflow/definition';
import { type RefusedContent, SiteHostError, type SiteHostRefusal, TransferFailure } from './site-host';

const refusalOfControl: Partial<Record<SiteHostErrorCode, SiteHostRefusal>> = {
  stale_fence: 'stale_fence',
  release_mismatch: 'moved',
  release_is_current: 'current',
  no_app: 'no_app',
  restart_blocked: 'restart_blocked',
  sandbox_unavailable: 'sandbox_unavailable',
  database_not_offered: 'database_not_offered',
};

const refusalOfJob: Partial<Record<string, SiteHostRefusal>> = {
  no_space: 'no_space',
  superseded: 'stale_fence',
  ...refusalOfControl,
};

/**
 * The direction in which a site's content moves: `pack` reads a release into an archive, `stage` writes an archive into
 * a release.
 */
type Direction = 'pack' | 'stage';

function refusalOf(error: unknown, direction: Direction | undefined): SiteHostRefusal | undefined {
  if (error instanceof ControlError) return refusalOfControl[error.code];
  if (error instanceof JobProblem) return refusalOfJob[error.code];
  if (isDiskFull(error)) return 'no_space';
  if (contentOf(error, direction) !== undefined)
    return direction === 'pack' ? 'content_not_packed' : 'content_not_loaded';
  if (!(error instanceof ArchiveError)) return undefined;
  return isFinal(error.reason) ? 'archive_refused' : undefined;
}

/** The content with which every attempt would fail. Undefined if the failure is transient or not about content. */
function contentOf(error: unknown, direction: Direction | undefined): RefusedContent | undefined {
  if (error instanceof TransferFailure)
    return error.isPermanent ? { object: error.object, reason: error.reason } : undefined;
  if (!(error instanceof ArchiveError)) return undefined;
  const isContent = direction === 'pack' && error.reason === 'limit_exceeded';
  return isContent ? { object: null, reason: reasonOf(error) } : undefined;
}

const reasonOf = ({ message, reason }: ArchiveError): string => message.replace(`${reason}: `, '');

/** Turns the problem that a job has reported back into the error that its process has thrown. */
function errorOfJob(error: unknown): unknown {
  if (!(error instanceof JobProblem)) return error;
  const archive = archiveErrorOfJob(error);
  if (archive !== null) return archive;
  if (!error.code.startsWith('transfer.')) return error;
  const { object = null, reason = error.message, permanent } = error.facts;
  return new TransferFailure(error.message, { object, reason, isPermanent: permanent === 'yes', cause: error });
}

/**
 * Turns a permanent error of `work` into a {@link SiteHostError}. `direction` must be given for work that moves
 * content.
 */
export function translated<T>(work: Promise<T>, direction?: Direction): Promise<T> {
  return work.catch((thrown: unknown) => {
    const error = errorOfJob(thrown);
    const refusal = refusalOf(error, direction);
    if (refusal === undefined) throw error;
    const content = contentOf(error, direction);
    const message = error instanceof Error ? error.message : String(error);
    throw new SiteHostError(refusal, message, { cause: error, ...(content === undefined ? {} : { content }) });
  });
}

export function unknownAsNull<T>(work: Promise<T>): Promise<T | null> {
  return work.catch((error: unknown) => {
    if (error instanceof ControlError && error.code === 'unknown_site') return null;
    throw error;
  });
}

/** Whether the agent is too old to know the call. */
export const isUnknownCall = (error: unknown): boolean =>
  error instanceof ControlError && error.code === 'unknown_route';
