export const transferCodes = [
  'meta_command',
  'statement_refused',
  'extension_untrusted',
  'loader_too_powerful',
  'database_not_empty',
  'dump_malformed',
  'counts_differ',
  'statement_failed',
  'copy_failed',
  'dump_failed',
  'message_too_large',
  'stalled',
] as const;
export type TransferErrorCode = (typeof transferCodes)[number];

export interface TransferErrorOptions extends ErrorOptions {
  /** The object in the customer's words, such as `table "public"."orders"`. */
  object?: string | undefined;
  isPermanent?: boolean;
}

/** Codes of errors that every further attempt would have too. For another code, the SQLSTATE of the cause decides. */
const permanentCodes: ReadonlySet<TransferErrorCode> = new Set<TransferErrorCode>([
  'meta_command',
  'statement_refused',
  'extension_untrusted',
  'loader_too_powerful',
  'dump_malformed',
  'counts_differ',
  'message_too_large',
  'stalled',
]);

/**
 * SQLSTATE classes of errors that every attempt would have: cardinality, data, constraints, dependent objects,
 * routines, names, checks of views, syntax and rights, program limits, errors that functions raise, unsupported
 * features, read-only transactions.
 */
const permanentClasses = new Set([
  '0A',
  '0L',
  '0P',
  '21',
  '22',
  '23',
  '25',
  '2B',
  '2F',
  '38',
  '39',
  '3F',
  '42',
  '44',
  '54',
  'P0',
]);

/**
 * Tells whether Postgres will refuse another attempt. 55000 means that an object lacks a precondition, for example a
 * partition that is not attached.
 */
export function isPermanentSqlState(code: unknown): boolean {
  return typeof code === 'string' && (permanentClasses.has(code.slice(0, 2)) || code === '55000');
}

export const isPermanent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && isPermanentSqlState(error.code);

/** Tells whether Postgres refused for lack of a right. */
export const isDenied = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && error.code === '42501';

/** The SQLSTATEs of undefined names. */
const droppedCodes: ReadonlySet<unknown> = new Set(['42P01', '42703', '42704', '42883', '3F000']);

/**
 * Tells whether a code is permanent for a reader of listed objects. For such a reader an undefined name is not
 * permanent, because the object may have been dropped after it was listed.
 */
export const isPermanentForReader = (code: unknown): boolean => isPermanentSqlState(code) && !droppedCodes.has(code);

export const sqlStateOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;

const outOfMemory = '53200';
const largeRequestBytes = 16 * 2 ** 20;

/**
 * Tells whether a value needs more memory than a session may have. A server that is short of memory for a moment fails
 * at small requests. Large requests succeed there, because their memory is not filled at once.
 */
function isTooLargeForSession(error: unknown): boolean {
  if (sqlStateOf(error) !== outOfMemory || !(error instanceof Error && 'detail' in error)) return false;
  const bytes = /request of size (\d+)/.exec(String(error.detail))?.[1];
  return Number(bytes ?? 0) >= largeRequestBytes;
}

/**
 * The reason why a dump, load or fingerprint stopped. `code` is stable. `message` may quote the customer's SQL and
 * values, and belongs only in the log. `object` and `reason` may be shown to the customer. The first five of
 * `transferCodes`, and a `dump_malformed` about a schema, are thrown before the target changes.
 */
export class TransferError extends Error {
  readonly code: TransferErrorCode;
  readonly object: string | null;
  /**
   * The cause's message, or `message` without a cause. A fixed text if a value needs more memory than a session may
   * have. Postgres' detail is left out, because it contains values.
   */
  readonly reason: string;
  /** True if another attempt with the same content fails again. */
  readonly isPermanent: boolean;

  constructor(code: TransferErrorCode, message: string, options: TransferErrorOptions = {}) {
    super(message, options);
    this.name = 'TransferError';
    this.code = code;
    this.object = options.object ?? null;
    const isTooLarge = isTooLargeForSession(options.cause);
    const said = options.cause instanceof Error ? options.cause.message : message;
    this.reason = isTooLarge ? 'it needs more memory than its server gives one session' : said;
    this.isPermanent =
      options.isPermanent ?? (isTooLarge || permanentCodes.has(code) || isPermanentSqlState(sqlStateOf(options.cause)));
  }
}

/** Wraps an error. A TransferError keeps its code, and gets the object if it has none. */
export function asTransferError(
  code: TransferErrorCode,
  what: string,
  error: unknown,
  options: Omit<TransferErrorOptions, 'cause'> = {},
): TransferError {
  if (error instanceof TransferError) {
    if (error.object !== null || options.object === undefined) return error;
    return new TransferError(error.code, error.message, {
      cause: error,
      object: options.object,
      isPermanent: error.isPermanent,
    });
  }
  return new TransferError(code, `${what}: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
    ...options,
  });
}
