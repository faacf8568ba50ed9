/** One version of an object that was written to be deleted, or to withstand it. */
export interface Canary {
  key: string;
  versionId: string;
}

/** How the storage took an attempt to delete one version: `refused` is what a lock does, `unclassified` neither the one nor the other. */
export type DeleteAnswer = 'deleted' | 'refused' | 'unclassified';

/** Objects beside the backups, under the same prefix, for one purpose: to find out whether a lock really keeps what is under it. */
export interface CanaryStorage {
  /** Whether the bucket has a lock to offer at all. */
  hasLock(): Promise<boolean>;
  /** Writes an object under a COMPLIANCE lock until then. Rejects with {@link CanaryError} when the credential is missing or refused. */
  write(name: string, until: Date): Promise<Canary>;
  /** The lock as the storage reports it for this version; null: none. */
  readLock(canary: Canary): Promise<{ mode: string; until: Date } | null>;
  /** Names the version: a delete without one hides an object and proves nothing. */
  delete(canary: Canary): Promise<DeleteAnswer>;
  exists(canary: Canary): Promise<boolean>;
  /** Removes the canaries of former days whose lock is over. */
  removeUnlocked(): Promise<void>;
}

/** The storage will have none of it. Anything else that a method rejects with: the storage could not be asked. */
export class CanaryError extends Error {
  readonly reason: 'credential_missing' | 'canary_write_failed';

  constructor(reason: CanaryError['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CanaryError';
    this.reason = reason;
  }
}
