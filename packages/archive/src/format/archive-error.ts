/**
 * All reasons why an archive is refused or an operation stops. The list is complete, so that callers may switch over
 * it.
 */
export const archiveReasons = {
  tampered: 'bytes differ from what was sealed',
  missing: 'an object is not there',
  truncated: 'an object is shorter than declared',
  wrong_key: 'sealed with another key',
  foreign: 'belongs to another archive, site or organisation',
  replayed_older: 'a valid archive, but not the one that was recorded',
  chain_gap: 'an archive of the chain is missing, out of order or of another chain',
  chain_cycle: 'an archive occurs twice in its chain',
  mismatch: 'sealed correctly, but the content contradicts what the archive declares',
  unsupported_format: 'written in a newer format than this reader knows',
  hostile_entry: 'an entry that could harm the target',
  limit_exceeded: 'more than this reader accepts',
  unknown_root: 'the archive holds no such root',
  source_unreadable: 'a file to be packed could not be read',
  staging_not_empty: 'the target directory is not an empty directory',
  no_space: 'the target file system is full',
  write_failed: 'the target file system refused a write',
} as const;

export type ArchiveReason = keyof typeof archiveReasons;

/**
 * The error with which an archive is refused or an operation stops. `message` is for operators' logs and may contain
 * paths of the archive, but no key material.
 */
export class ArchiveError extends Error {
  readonly reason: ArchiveReason;

  constructor(reason: ArchiveReason, detail: string, options?: ErrorOptions) {
    super(`${reason}: ${detail}`, options);
    this.name = 'ArchiveError';
    this.reason = reason;
  }
}

export function refuse(reason: ArchiveReason, detail: string, cause?: unknown): never {
  throw new ArchiveError(reason, detail, cause === undefined ? undefined : { cause });
}

const fullDiskCodes = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/**
 * Returns the `code` of a system error such as `ENOENT`, otherwise ''. `instanceof` is not used, because an error of a
 * thread or of jest has another `Error` class.
 */
export function systemErrorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}

/** Turns a failed write's error into an ArchiveError, unless it is one already. */
export function asWriteError(error: unknown): ArchiveError {
  if (error instanceof ArchiveError) return error;
  const reason = fullDiskCodes.has(systemErrorCode(error)) ? 'no_space' : 'write_failed';
  return new ArchiveError(reason, String(error), { cause: error });
}
