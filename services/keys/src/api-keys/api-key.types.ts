import type { Mode } from '@drydock/contracts/platform/values';

/** A key as the service knows it: without its secret, and with its hash only for verification. */
export interface ApiKeyRecord {
  id: string;
  orgId: string;
  name: string;
  prefix: string;
  /** The scopes that were bound when the key was minted. */
  scopes: string[];
  mode: Mode;
  createdAt: Date;
  lastUsedAt: Date | null;
  validUntil: Date | null;
  createdBy: string | null;
  expiresAt: Date | null;
  /** Empty: from anywhere. */
  allowedIps: string[];
  revokedAt: Date | null;
}

/**
 * The rights of a key right now: `scopes`, less those that any organisation from the root down to its own does not
 * have.
 */
export interface KeyRights {
  scopes: string[];
  allowedByEach: string[][];
}

/** The limits of a key beyond its rights. Keys that it mints inherit them. */
export type KeyLimits = Pick<ApiKeyRecord, 'expiresAt' | 'allowedIps'>;

/** The keys that a caller may manage: those of its organisation and below. With a sandbox key, only sandbox keys. */
export interface KeyScope {
  orgId: string;
  mode: Mode;
}
