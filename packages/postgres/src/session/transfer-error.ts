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
  /** The object in words that the customer can search for: `table "public"."orders"`. */
  object?: string | undefined;
  isPermanent?: boolean;
}

/**
 * Codes for content that fails again at every attempt. The other codes are as permanent as the error of Postgres that
 * caused them.
 */
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
 * SQLSTATE classes that are the same at every attempt: cardinality, data, constraints, dependent objects, routines,
 * names, the checks of views, syntax and rights, program limits, what a function raises, unsupported features,
 * read-only transactions. And 55000: an object lacks what the statement needs, for example a partition that is not
 * attached.
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

/** Whether Postgres will refuse the same again. */
export function isPermanentSqlState(code: unknown): boolean {
  return typeof code === 'string' && (permanentClasses.has(code.slice(0, 2)) || code === '55000');
}

/** Whether an error that a session gets is permanent. */
export const isPermanent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && isPermanentSqlState(error.code);

/**
 * Undefined names. To a reader of a database they also mean that a relation, a column, an object, a function or a
 * schema was dropped a moment ago.
 */
const droppedCodes: ReadonlySet<unknown> = new Set(['42P01', '42703', '42704', '42883', '3F000']);

/**
 * Whether a code is permanent for a statement that only reads listed objects. An object may have been dropped since it
 * was listed.
 */
export const isPermanentForReader = (code: unknown): boolean => isPermanentSqlState(code) && !droppedCodes.has(code);

export const sqlStateOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;

const outOfMemory = '53200';
const largeRequestBytes = 16 * 2 ** 20;

/**
 * Whether one piece of content needs more memory than its server gives a session. A server that is short of memory for
 * a while fails at small requests, too. But it accepts large ones, because it does not fill them at once.
 */
function isTooLargeForSession(error: unknown): boolean {
  if (sqlStateOf(error) !== outOfMemory || !(error instanceof Error && 'detail' in error)) return false;
  const bytes = /request of size (\d+)/.exec(String(error.detail))?.[1];
  return Number(bytes ?? 0) >= largeRequestBytes;
}

/**
 * Why a dump, a load or a fingerprint stopped. `code` is stable. `message` may quote the customer's SQL and values, so
 * it belongs only in the log. `object` and `reason` are for the customer whose content it is. The first five refusals,
 * and a `dump_malformed` about a schema, are thrown before anything in the target has changed.
 */
export class TransferError extends Error {
  readonly code: TransferErrorCode;
  readonly object: string | null;
  /** The text of Postgres, without the row's values, which Postgres puts into the detail. */
  readonly reason: string;
  /** Whether the same content fails again at every attempt. */
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

/**
 * Wraps an unexpected error under a code. An error that already has a code keeps it, and gets the object when it names
 * none.
 */
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
