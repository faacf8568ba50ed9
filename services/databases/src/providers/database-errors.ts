import { ArchiveError, systemErrorCode } from '@drydock/archive/archive-error';
import { DatabaseHostError, type DatabaseHostErrorCode } from '@drydock/database-host/database-host-error';
import { TransferError, type TransferErrorCode } from '@drydock/pg-transfer/transfer-error';
import { DatabaseProviderError, type DatabaseRefusal } from './database-provider';

const refusalOfControl: Partial<Record<DatabaseHostErrorCode, DatabaseRefusal>> = {
  unknown_database: 'unknown_database',
  unknown_upgrade: 'moved',
  upgrade_mismatch: 'moved',
  already_switched: 'switched',
  stale_fence: 'stale_fence',
  major_not_installed: 'major_not_installed',
};

/** A dump that no repetition makes better; the other codes may be a connection that was lost. */
const refusedDumps: readonly TransferErrorCode[] = [
  'meta_command',
  'statement_refused',
  'extension_untrusted',
  'dump_malformed',
  'counts_differ',
];

const fullDiskCodes = new Set(['53100', 'ENOSPC', 'EDQUOT']);

/** Postgres says 53100 when its disk is full, the file system ENOSPC or EDQUOT, wrapped or not. */
function isDiskFull(error: unknown, depth = 0): boolean {
  if (fullDiskCodes.has(systemErrorCode(error))) return true;
  return depth < 5 && error instanceof Error && isDiskFull(error.cause, depth + 1);
}

function refusalOf(error: unknown): DatabaseRefusal | undefined {
  if (error instanceof DatabaseHostError) return refusalOfControl[error.code];
  if (isDiskFull(error)) return 'no_space';
  if (error instanceof TransferError) return refusedDumps.includes(error.code) ? 'archive_refused' : undefined;
  if (!(error instanceof ArchiveError)) return undefined;
  if (error.reason === 'no_space') return 'no_space';
  return error.reason === 'write_failed' || error.reason === 'source_unreadable' ? undefined : 'archive_refused';
}

/** The same work, with what no repetition can mend as a {@link DatabaseProviderError}. */
export function translated<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    const refusal = refusalOf(error);
    throw refusal === undefined
      ? error
      : new DatabaseProviderError(refusal, error instanceof Error ? error.message : String(error), { cause: error });
  });
}

/** What the reader says of an instance that does not answer. */
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
