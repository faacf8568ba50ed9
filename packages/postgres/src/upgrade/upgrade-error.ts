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
  /** The object in the customer's words, such as `TABLE public.orders`. */
  object?: string | undefined;
}

/**
 * The reason why a stage stopped. `code` is stable. `message` may quote SQL of the customer, and belongs only in the
 * log. `object` and `reason` may be shown to the customer. The old instance stays unchanged. After `busy` and
 * `not_caught_up` another attempt may succeed.
 */
export class UpgradeError extends Error {
  override readonly name = 'UpgradeError';
  readonly code: UpgradeErrorCode;
  readonly object: string | null;
  /** Postgres' message. Its detail is left out, because it contains values. */
  readonly reason: string;
  /** True if another attempt with the same content fails again. */
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
