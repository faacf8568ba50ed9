import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { idSchema, modeSchema, pageOf, pageQuerySchema, text, timestampSchema, uuidSchema } from '../platform/values';

/** interface.md 2.1. `token` is in the creating answer only. */
export const apiKeySchema = z
  .strictObject({
    id: uuidSchema,
    name: z.string(),
    prefix: z.string(),
    scopes: z.array(z.string()),
    sandbox: z.boolean(),
    last_used_at: timestampSchema.nullable(),
    revoked_at: timestampSchema.nullable(),
    created_at: timestampSchema,
  })
  .meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof apiKeySchema>;

export const mintedApiKeySchema = apiKeySchema.extend({ token: z.string() }).meta({ id: 'MintedApiKey' });
export type MintedApiKey = z.infer<typeof mintedApiKeySchema>;

const keyId = { schema: idSchema, notFound: 'api_key_not_found' } as const;
const tags = ['API keys'] as const;

export const createApiKey = endpoint({
  id: 'createApiKey',
  service: 'keys',
  method: 'POST',
  path: '/v1/api-keys',
  summary: 'Mint an API key; its token is shown once',
  permissions: ['apikeys.manage'],
  quota: 'mint',
  body: z.strictObject({
    name: text(200),
    scopes: z.array(z.string().max(100)).max(100).default([]),
    sandbox: z.boolean().default(false),
    org_id: idSchema.nullable().default(null),
  }),
  example: { name: 'deploy', scopes: ['sites.view', 'hosting.backup.manage'], sandbox: false },
  response: { status: 201, schema: mintedApiKeySchema },
  problems: ['org_out_of_scope', 'scope_not_held', 'sandbox_key', 'unknown_scope', 'idempotency_in_flight'],
  tags,
});

export const listApiKeys = endpoint({
  id: 'listApiKeys',
  service: 'keys',
  method: 'GET',
  path: '/v1/api-keys',
  summary: 'List the keys that the caller can manage, as metadata only',
  permissions: ['apikeys.manage'],
  query: pageQuerySchema.extend({ org_id: idSchema.optional() }),
  response: { status: 200, schema: pageOf(apiKeySchema) },
  problems: ['org_out_of_scope'],
  tags,
});

export const getApiKey = endpoint({
  id: 'getApiKey',
  service: 'keys',
  method: 'GET',
  path: '/v1/api-keys/{keyId}',
  summary: 'One key, as metadata only',
  permissions: ['apikeys.manage'],
  params: { keyId },
  response: { status: 200, schema: apiKeySchema },
  problems: [],
  tags,
});

export const revokeApiKey = endpoint({
  id: 'revokeApiKey',
  service: 'keys',
  method: 'DELETE',
  path: '/v1/api-keys/{keyId}',
  summary: 'Revoke a key: no request begun after the answer succeeds with it',
  permissions: ['apikeys.manage'],
  params: { keyId },
  response: { status: 204 },
  problems: [],
  tags,
});

/** Longest time for which the old token may live on after a rotation. */
const graceSecondsMax = 7 * 24 * 3600;

export const rotateApiKey = endpoint({
  id: 'rotateApiKey',
  service: 'keys',
  method: 'POST',
  path: '/v1/api-keys/{keyId}/rotate',
  summary: 'Replace a key by a new one of the same rights; the old one works on for a grace time',
  permissions: ['apikeys.manage'],
  quota: 'mint',
  params: { keyId },
  body: z.strictObject({ grace_seconds: z.int().min(0).max(graceSecondsMax).default(3600) }),
  example: { grace_seconds: 3600 },
  response: { status: 201, schema: mintedApiKeySchema },
  problems: ['scope_not_held'],
  tags,
});

export const getMe = endpoint({
  id: 'getMe',
  service: 'keys',
  method: 'GET',
  path: '/v1/me',
  summary: 'The calling key: its organisation, effective scopes and mode',
  permissions: [],
  response: {
    status: 200,
    schema: z
      .strictObject({
        key: apiKeySchema,
        org: z.strictObject({ id: uuidSchema, name: z.string() }),
        scopes: z.array(z.string()),
        mode: modeSchema,
      })
      .meta({ id: 'Me' }),
  },
  problems: [],
  tags,
});

export const listPermissions = endpoint({
  id: 'listPermissions',
  service: 'keys',
  method: 'GET',
  path: '/v1/permissions',
  summary: 'Every permission there is, and whether the calling key may exercise it',
  permissions: [],
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(z.strictObject({ key: z.string(), meaning: z.string(), held: z.boolean() })) },
  problems: [],
  tags,
});
