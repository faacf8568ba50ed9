import { ArchiveError, type ArchiveReason, archiveReasons } from '@drydock/archive';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { fail, type StepFailure } from './step-error';

/**
 * The kinds of archive: a site's or a database's backup in Drydock's storage, or a site's copy in the customer's
 * storage.
 */
export type ArchiveKind = 'site_backup' | 'site_copy' | 'database_backup';

/** The reasons for which the customer's storage cannot be used. */
export type StorageReason = 'endpoint_refused' | 'credentials_rejected' | 'bucket_unusable';
/** The reasons for which the packing or the loading of a customer's content is refused. */
export type ContentReason = 'content_not_packed' | 'content_not_loaded';
export type FailureReason = ArchiveReason | StorageReason | ContentReason;

interface FinalFailure {
  codes: Record<ArchiveKind, ProblemCode>;
  /** The kinds of archive for which staff are called, because the customer cannot remove the cause. */
  alarms: readonly ArchiveKind[];
  /**
   * Set if the customer is shown the message of the ArchiveError. The messages of these failures name only a limit or a
   * format.
   */
  tellsDetail?: true;
}

const ours = ['site_backup', 'database_backup'] as const;
const nobody = [] as const;

const ofArchive = (backup: ProblemCode, copy: ProblemCode): FinalFailure => ({
  codes: { site_backup: backup, site_copy: copy, database_backup: backup },
  alarms: ours,
});
const ofAll = (code: ProblemCode, alarms: readonly ArchiveKind[]): FinalFailure => ({
  ...ofArchive(code, code),
  alarms,
});

const tampered = ofArchive('backup_tampered', 'copy_tampered');

/**
 * The problem code for each reason for which an archive, its storage or its content is refused, and the kinds of
 * archive for which staff are called. `may_pass` marks a transient reason, after which the step is tried again until
 * its attempts are used up. Every other reason is final.
 */
export const archiveFailures: Readonly<Record<FailureReason, FinalFailure | 'may_pass'>> = {
  // The archive or its chain is not the expected one, or its bytes are not those that Drydock wrote.
  tampered,
  truncated: tampered,
  wrong_key: tampered,
  foreign: tampered,
  replayed_older: tampered,
  chain_gap: tampered,
  chain_cycle: tampered,
  mismatch: tampered,
  hostile_entry: tampered,
  unknown_root: tampered,
  // The archive is incomplete, too large or of a newer format.
  missing: ofArchive('backup_missing', 'copy_missing'),
  limit_exceeded: { ...ofArchive('backup_too_large', 'copy_too_large'), tellsDetail: true },
  unsupported_format: { ...ofArchive('backup_format_newer', 'copy_format_newer'), tellsDetail: true },
  // The customer's storage cannot be used.
  endpoint_refused: ofAll('offsite_endpoint_refused', nobody),
  credentials_rejected: ofAll('offsite_credentials_rejected', nobody),
  bucket_unusable: ofAll('offsite_bucket_unusable', nobody),
  // The customer's content is refused.
  content_not_packed: {
    codes: {
      site_backup: 'site_content_refused',
      site_copy: 'site_content_refused',
      database_backup: 'database_content_refused',
    },
    alarms: nobody,
  },
  content_not_loaded: ofAll('backup_content_refused', nobody),
  // The machine that does the work has a full disk, cannot read or write a file, or has a staging folder that is not
  // empty.
  no_space: ofAll('storage_full', ['site_backup', 'site_copy', 'database_backup']),
  source_unreadable: 'may_pass',
  staging_not_empty: 'may_pass',
  write_failed: 'may_pass',
};

export const isFinal = (reason: FailureReason): boolean => archiveFailures[reason] !== 'may_pass';

/**
 * The failure of a step for this reason; undefined if the reason is transient. `detail` and `extra` are shown to the
 * customer.
 */
export function archiveFailure(
  reason: FailureReason,
  kind: ArchiveKind,
  error: unknown,
  told: { detail?: string; extra?: Record<string, unknown> } = {},
): StepFailure | undefined {
  const failure = archiveFailures[reason];
  if (failure === 'may_pass') return undefined;
  const archive = archiveErrorIn(error);
  const detail = failure.tellsDetail && archive !== null ? { detail: archive.message.replace(`${reason}: `, '') } : {};
  const alarm = failure.alarms.includes(kind) ? { alarm: 'archive_refused' } : {};
  return fail(failure.codes[kind], { ...detail, ...told, ...alarm, internal: String(error), cause: error });
}

/**
 * Finds the ArchiveError in a chain of causes. Only the error and its next four causes are searched. Null if none of
 * them is an ArchiveError.
 */
export function archiveErrorIn(error: unknown): ArchiveError | null {
  let cause = error;
  for (let depth = 0; depth < 5 && cause instanceof Error; depth++) {
    if (cause instanceof ArchiveError) return cause;
    cause = cause.cause;
  }
  return null;
}

/**
 * Rebuilds the ArchiveError that a job on an agent reported under the code `archive.<reason>`. Null for any other code.
 */
export function archiveErrorOfJob(problem: Error & { code: string }): ArchiveError | null {
  const reason = problem.code.startsWith('archive.') ? problem.code.slice('archive.'.length) : '';
  return isReason(reason)
    ? new ArchiveError(reason, problem.message.replace(`${reason}: `, ''), { cause: problem })
    : null;
}

const isReason = (text: string): text is ArchiveReason => Object.hasOwn(archiveReasons, text);
