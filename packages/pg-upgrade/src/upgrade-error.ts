export type UpgradeErrorCode = 'busy' | 'not_caught_up' | 'replication_failed' | 'statement_failed' | 'not_sealed' | 'copy_failed';

/**
 * Why a stage stopped. `code` is stable; `message` may quote SQL of the customer, so it belongs in the log only. All of them leave the old instance
 * as it is; `busy` and `not_caught_up` may pass.
 */
export class UpgradeError extends Error {
  override readonly name = 'UpgradeError';
  readonly code: UpgradeErrorCode;

  constructor(code: UpgradeErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
