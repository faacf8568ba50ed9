import type { Mode } from '@drydock/contracts/platform/values';

/** A key as the service knows it: never its secret, and its hash only where it is verified. */
export interface ApiKeyRecord {
  id: string;
  orgId: string;
  name: string;
  prefix: string;
  /** As bound at minting. */
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

/** What a key may do right now is `scopes`, less what any organisation from the root down to its own is not allowed. */
export interface KeyRights {
  scopes: string[];
  allowedByEach: string[][];
}

/** What bounds the use of a key beyond its rights. What it mints has the same. */
export type KeyLimits = Pick<ApiKeyRecord, 'expiresAt' | 'allowedIps'>;

/** Whose keys a caller may manage: those of its organisation and below; with a sandbox key, the sandbox keys among them. */
export interface KeyScope {
  orgId: string;
  mode: Mode;
}
