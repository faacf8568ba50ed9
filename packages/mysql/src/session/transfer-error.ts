export const transferCodes = [
  'unavailable',
  'refused',
  'dump_failed',
  'database_not_empty',
  'statement_refused',
  'load_failed',
  'rows_differ',
  'dump_malformed',
] as const;
export type TransferErrorCode = (typeof transferCodes)[number];

/**
 * Codes of errors after which every further attempt fails too. For other codes, the server's error decides (see
 * `isPermanent`).
 */
const permanentCodes: ReadonlySet<TransferErrorCode> = new Set<TransferErrorCode>([
  'refused',
  'statement_refused',
  'rows_differ',
  'dump_malformed',
]);

const unavailableCodes = new Set([
  ...[
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOENT',
    'EPIPE',
    'ETIMEDOUT',
    'PROTOCOL_CONNECTION_LOST',
    'PROTOCOL_SEQUENCE_TIMEOUT',
  ],
  ...['ER_CON_COUNT_ERROR', 'ER_SERVER_SHUTDOWN', 'ER_NORMAL_SHUTDOWN'],
]);
const refusedCodes = new Set([
  'ER_ACCESS_DENIED_ERROR',
  'ER_DBACCESS_DENIED_ERROR',
  'ER_NOT_SUPPORTED_AUTH_MODE',
  'ER_ACCOUNT_HAS_BEEN_LOCKED',
]);
/**
 * Server errors after which another attempt may succeed: a definition newer than the snapshot, a lock time-out, a
 * deadlock, an interrupted statement.
 */
const passingCodes = new Set([
  ...[
    'ER_TABLE_DEF_CHANGED',
    'ER_LOCK_WAIT_TIMEOUT',
    'ER_LOCK_DEADLOCK',
    'ER_QUERY_INTERRUPTED',
    'ER_QUERY_TIMEOUT',
    'ER_STATEMENT_TIMEOUT',
  ],
  // The object was dropped, or replaced by a view, after it was listed.
  ...[
    'ER_NO_SUCH_TABLE',
    'ER_BAD_DB_ERROR',
    'ER_SP_DOES_NOT_EXIST',
    'ER_TRG_DOES_NOT_EXIST',
    'ER_EVENT_DOES_NOT_EXIST',
  ],
  'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION',
]);

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');

/**
 * The reason why a session, dump or load stopped. `code` is stable. `message` may quote the customer's SQL and belongs
 * only in the log. `object` and `reason` may be shown to the customer.
 */
export class TransferError extends Error {
  override readonly name = 'TransferError';
  readonly code: TransferErrorCode;
  /** The object in the customer's words, such as `` table `shop`.`orders` ``. */
  readonly object: string | null;
  /** The server's own message, or this error's message if the server gave none. */
  readonly reason: string;
  /** True if another attempt with the same content fails again. */
  readonly isPermanent: boolean;

  constructor(code: TransferErrorCode, message: string, options: ErrorOptions & { object?: string | undefined } = {}) {
    super(message, options);
    const { cause, object } = options;
    this.code = code;
    this.object = object ?? null;
    this.reason = cause instanceof Error ? cause.message : message;
    this.isPermanent =
      permanentCodes.has(code) ||
      (codeOf(cause).startsWith('ER_') && !passingCodes.has(codeOf(cause)) && code !== 'unavailable');
  }
}

/**
 * Wraps an error of the server. The result has `code`, unless the server's code means `unavailable` or `refused`. A
 * TransferError stays unchanged.
 */
export function asTransferError(code: TransferErrorCode, error: unknown, object?: string): TransferError {
  if (error instanceof TransferError) return error;
  const said = codeOf(error);
  const actual = unavailableCodes.has(said) ? 'unavailable' : refusedCodes.has(said) ? 'refused' : code;
  const message = error instanceof Error ? error.message : String(error);
  return new TransferError(actual, object === undefined ? message : `${object}: ${message}`, { cause: error, object });
}
