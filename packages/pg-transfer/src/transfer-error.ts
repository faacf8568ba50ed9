export type TransferErrorCode =
  | 'meta_command'
  | 'statement_refused'
  | 'extension_untrusted'
  | 'loader_too_powerful'
  | 'database_not_empty'
  | 'dump_malformed'
  | 'counts_differ'
  | 'statement_failed'
  | 'copy_failed'
  | 'dump_failed';

/**
 * Why a dump, a load or a fingerprint stopped. `code` is stable; `message` may quote SQL of the customer, so it belongs in the log only.
 * The first five refusals, and `dump_malformed` of a schema, are raised before the target has been changed at all.
 */
export class TransferError extends Error {
  readonly code: TransferErrorCode;

  constructor(code: TransferErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TransferError';
    this.code = code;
  }
}

/** Wraps an unexpected error under a code; one that already has a code passes unchanged. */
export function asTransferError(code: TransferErrorCode, what: string, error: unknown): TransferError {
  if (error instanceof TransferError) return error;
  return new TransferError(code, `${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}
