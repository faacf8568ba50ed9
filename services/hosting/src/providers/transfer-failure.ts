/**
 * A database of either engine that could not give or take a site's content: a TransferError of packages/postgres or
 * packages/mysql, as an agent's job reports it. `message` may quote SQL and values of the customer, so it belongs in
 * the log only; `object` and `reason` are for the customer.
 */
export class TransferFailure extends Error {
  override readonly name = 'TransferFailure';
  readonly object: string | null;
  readonly reason: string;
  /** The same content fails again however often it is tried. */
  readonly isPermanent: boolean;

  constructor(message: string, { object, reason, isPermanent, ...options }: ErrorOptions & Told) {
    super(message, options);
    this.object = object;
    this.reason = reason;
    this.isPermanent = isPermanent;
  }
}

type Told = Pick<TransferFailure, 'object' | 'reason' | 'isPermanent'>;
