/** One version of an object that was written to be deleted, or to withstand deletion. */
export interface Canary {
  key: string;
  versionId: string;
}

/** The storage's answer to a delete of one version: a lock answers `refused`. `unclassified` is any other error. */
export type DeleteAnswer = 'deleted' | 'refused' | 'unclassified';

/**
 * Test objects beside the backups, under the same prefix. They show whether a lock really keeps the objects under it.
 */
export interface CanaryStorage {
  /** Whether the bucket has a lock to offer at all. */
  hasLock(): Promise<boolean>;
  /**
   * Writes an object under a COMPLIANCE lock until then. Rejects with {@link CanaryError} when the credential is
   * missing or refused.
   */
  write(name: string, until: Date): Promise<Canary>;
  /** The lock as the storage reports it for this version; null: none. */
  readLock(canary: Canary): Promise<{ mode: string; until: Date } | null>;
  /** Deletes this version. A delete without a version would only hide the object and prove nothing. */
  delete(canary: Canary): Promise<DeleteAnswer>;
  exists(canary: Canary): Promise<boolean>;
  /** Removes the canaries of former days whose lock is over. */
  removeUnlocked(): Promise<void>;
}

/** The storage refuses for good. Any other rejection means that it could not be asked. */
export class CanaryError extends Error {
  readonly reason: 'credential_missing' | 'canary_write_failed';

  constructor(reason: CanaryError['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CanaryError';
    this.reason = reason;
  }
}
