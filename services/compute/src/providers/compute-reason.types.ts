/**
 * Everything that a provider may refuse with, whatever its own words. `locked`, `conflict`, `rate_limited` and `unavailable` are worth a later attempt of the same call; the
 * others are final, but for `ambiguous`, after which the driver's `find` is asked.
 */
export type ComputeReason =
  /** Another action holds the machine (423). Passes. */
  | 'locked'
  /** Somebody else changed it at the same time (409). Passes. */
  | 'conflict'
  /** Ours or the provider's budget is spent: `retryAfterSeconds` says until when. Passes. */
  | 'rate_limited'
  /** No answer, or none that can be read, and nothing was accepted. Passes. */
  | 'unavailable'
  /** A change was sent and its answer lost or unreadable: it may have been accepted. Look, never send again. */
  | 'ambiguous'
  /** Final: what it needs is not there (any more). */
  | 'machine_not_found'
  | 'snapshot_not_found'
  | 'action_not_found'
  /** Final: image, size or zone of an order are not offered. */
  | 'order_refused'
  | 'snapshot_not_ready'
  | 'newer_snapshots'
  /** Final: only a machine that runs is restarted. */
  | 'not_running'
  /** Final: the guest did not shut down when it was asked to. The machine runs as before. */
  | 'guest_unresponsive'
  /** Final: architecture or size of the disk. */
  | 'incompatible'
  /** Final until staff lift the protection. */
  | 'protected'
  /** The driver has no such change. */
  | 'unsupported'
  /** The provider answered about another machine or action. */
  | 'foreign'
  /** 401, 403: our credential. Page staff. */
  | 'credentials_refused'
  /** Any other definite refusal, our own mistakes included. Page staff. */
  | 'rejected';
