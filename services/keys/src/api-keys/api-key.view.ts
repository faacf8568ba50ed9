import type { ApiKey, MintedApiKey } from '@drydock/contracts/keys/api-keys';
import type { ApiKeyRecord } from './api-key.types';

export const viewApiKey = (key: ApiKeyRecord): ApiKey => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix,
  scopes: key.scopes,
  sandbox: key.mode === 'sandbox',
  last_used_at: key.lastUsedAt?.toISOString() ?? null,
  revoked_at: key.revokedAt?.toISOString() ?? null,
  created_at: key.createdAt.toISOString(),
});

export const viewMinted = (key: ApiKeyRecord, token: string): MintedApiKey => ({ ...viewApiKey(key), token });
