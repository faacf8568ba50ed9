import { ArchiveError, systemErrorCode } from '@drydock/archive/archive-error';
import { TransferError, type TransferErrorCode } from '@drydock/pg-transfer/transfer-error';
import { SiteHostError as ControlError, type SiteHostErrorCode } from '@drydock/site-host/site-host-error';
import { SiteHostError, type SiteHostRefusal } from './site-host';

const refusalOfControl: Partial<Record<SiteHostErrorCode, SiteHostRefusal>> = {
  stale_fence: 'stale_fence',
  release_mismatch: 'moved',
  release_is_current: 'current',
  no_app: 'no_app',
  restart_blocked: 'restart_blocked',
};

/** A dump that no repetition makes better; the other codes may be a connection that was lost. */
const refusedDumps: readonly TransferErrorCode[] = [
  'meta_command',
  'statement_refused',
  'extension_untrusted',
  'loader_too_powerful',
  'dump_malformed',
  'counts_differ',
];

function refusalOf(error: unknown): SiteHostRefusal | undefined {
  if (error instanceof ControlError) return refusalOfControl[error.code];
  if (error instanceof TransferError)
    return isDiskFull(error) ? 'no_space' : refusedDumps.includes(error.code) ? 'archive_refused' : undefined;
  if (!(error instanceof ArchiveError)) return isDiskFull(error) ? 'no_space' : undefined;
  if (error.reason === 'no_space') return 'no_space';
  const mayPass = error.reason === 'write_failed' || error.reason === 'source_unreadable' || error.reason === 'staging_not_empty';
  return mayPass ? undefined : 'archive_refused';
}

const fullDiskCodes = new Set(['53100', 'ENOSPC', 'EDQUOT']);

/** Postgres says 53100 when its disk is full, the file system ENOSPC or EDQUOT, wrapped or not. */
export function isDiskFull(error: unknown, depth = 0): boolean {
  if (fullDiskCodes.has(systemErrorCode(error))) return true;
  return depth < 5 && error instanceof Error && isDiskFull(error.cause, depth + 1);
}

/** The same work, with what no repetition can mend as a {@link SiteHostError}. */
export function translated<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    const refusal = refusalOf(error);
    throw refusal === undefined
      ? error
      : new SiteHostError(refusal, error instanceof Error ? error.message : String(error), { cause: error });
  });
}

export function unknownAsNull<T>(work: Promise<T>): Promise<T | null> {
  return work.catch((error: unknown) => {
    if (error instanceof ControlError && error.code === 'unknown_site') return null;
    throw error;
  });
}
