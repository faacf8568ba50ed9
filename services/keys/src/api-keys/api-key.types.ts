import type { Mode } from '@drydock/contracts/values';

/** A key as the service knows it: never its secret, and its hash only where it is verified. */
export interface ApiKeyRecord {
  id: string;
  orgId: string;
  name: string;
  prefix: string;
  scopes: string[];
  mode: Mode;
  createdAt: Date;
  lastUsedAt: Date | null;
  validUntil: Date | null;
  revokedAt: Date | null;
}
