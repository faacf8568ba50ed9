/**
 * Every reason for a provider's refusal, independent of the provider. After `locked`, `conflict`, `rate_limited` and
 * `unavailable` the same call may be tried later. The others are final, except for `ambiguous`, after which the
 * driver's `find` is called.
 */
export type ComputeReason =
  /** Another action holds the machine (423). Transient. */
  | 'locked'
  /** Somebody else changed it at the same time (409). Transient. */
  | 'conflict'
  /** Our rate budget or the provider's is used up; `retryAfterSeconds` says for how long. Transient. */
  | 'rate_limited'
  /** No answer, or none that can be read, and nothing was accepted. Transient. */
  | 'unavailable'
  /**
   * A change was sent and its answer lost or unreadable: it may have been accepted. Look for it, and never send it
   * again.
   */
  | 'ambiguous'
  /** Final: the machine does not exist (any more). */
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
  /** Final: the architecture or the size of the disk does not fit. */
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
