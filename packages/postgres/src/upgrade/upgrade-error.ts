import { isPermanentSqlState, sqlStateOf } from '../session/transfer-error';

export type UpgradeErrorCode =
  | 'busy'
  | 'not_caught_up'
  | 'replication_failed'
  | 'statement_failed'
  | 'not_sealed'
  | 'copy_failed'
  | 'rights_differ';

export interface UpgradeErrorOptions extends ErrorOptions {
  /** The object in words that the customer can search for: `TABLE public.orders`. */
  object?: string | undefined;
}

/**
 * The reason why a stage stopped. `code` is stable. `message` may quote SQL of the customer, so it belongs in the log
 * only. `object` and `reason` are for the customer. Every code leaves the old instance as it is; `busy` and
 * `not_caught_up` may be transient.
 */
export class UpgradeError extends Error {
  override readonly name = 'UpgradeError';
  readonly code: UpgradeErrorCode;
  readonly object: string | null;
  /** The message of Postgres. It has no values of rows, which Postgres puts into the detail. */
  readonly reason: string;
  /** Whether the same content fails again at every attempt. */
  readonly isPermanent: boolean;

  constructor(code: UpgradeErrorCode, message: string, options: UpgradeErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.object = options.object ?? null;
    this.reason = options.cause instanceof Error ? options.cause.message : message;
    this.isPermanent =
      code === 'rights_differ' || (code === 'statement_failed' && isPermanentSqlState(sqlStateOf(options.cause)));
  }
}
