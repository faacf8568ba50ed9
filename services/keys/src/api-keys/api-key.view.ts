import type { ApiKey, ApiKeyDetail, MintedApiKey } from '@drydock/contracts/keys/api-keys';
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

export const viewDetail = (key: ApiKeyRecord): ApiKeyDetail => ({
  ...viewApiKey(key),
  expires_at: key.expiresAt?.toISOString() ?? null,
  allowed_ips: key.allowedIps,
  created_by: key.createdBy,
});
