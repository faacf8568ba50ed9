import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { idSchema, modeSchema, pageOf, pageQuerySchema, text, timestampSchema, uuidSchema } from '../platform/values';

const allowedIpsMax = 20;
const allowedIpsSchema = z
  .array(
    z.union(
      [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
      'must be an address such as 203.0.113.7, or a network such as 203.0.113.0/24 or 2001:db8::/32',
    ),
  )
  .max(allowedIpsMax);

/**
 * The key of interface.md 2.1, without `token`. Only an answer that creates a token has it ({@link
 * mintedApiKeySchema}).
 */
export const apiKeySchema = z
  .strictObject({
    id: uuidSchema.describe("The key's record. This is no part of the token."),
    name: z.string().describe('As it was given when the key was minted.'),
    prefix: z.string().describe('Public part of the token, to tell keys apart by.'),
    scopes: z.array(z.string()).describe('Permissions that the key may exercise, where its organisation holds them.'),
    sandbox: z
      .boolean()
      .describe(
        'Whether it is a test key: it reaches the sandbox only, where nothing is charged and no machine is ordered.',
      ),
    last_used_at: timestampSchema
      .nullable()
      .describe('When it last authenticated a request, to the minute; null if never.'),
    revoked_at: timestampSchema.nullable().describe('Always null: a revoked key is in no list and cannot be fetched.'),
    created_at: timestampSchema.describe('When it was minted.'),
  })
  .meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof apiKeySchema>;

/** A key with further fields. Only the answers to the GET and the PATCH of a single key have these fields. */
export const apiKeyDetailSchema = apiKeySchema
  .extend({
    expires_at: timestampSchema
      .nullable()
      .describe(
        'When it ends by itself, as if it were revoked then; null for never. ' +
          'After a rotation it is at the latest the end of the grace time.',
      ),
    allowed_ips: z
      .array(z.string())
      .describe(
        'Addresses and networks, such as 203.0.113.7 or 2001:db8::/32, from which it can be used; empty for any.',
      ),
    created_by: uuidSchema.nullable().describe('The key that minted it; null for the first one of an organisation.'),
  })
  .meta({ id: 'ApiKeyDetail' });
export type ApiKeyDetail = z.infer<typeof apiKeyDetailSchema>;

export const mintedApiKeySchema = apiKeySchema
  .extend({
    token: z
      .string()
      .describe(
        'The whole token, `dd_<live|test>_<prefix>_<secret>`. Shown by this answer only; nobody can read it again.',
      ),
  })
  .meta({ id: 'MintedApiKey' });
export type MintedApiKey = z.infer<typeof mintedApiKeySchema>;

const keyId = {
  schema: idSchema.describe("The key's record, which is no part of its token."),
  notFound: 'api_key_not_found',
} as const;
const tags = ['API keys'] as const;

export const createApiKey = endpoint({
  id: 'createApiKey',
  service: 'keys',
  method: 'POST',
  path: '/v1/api-keys',
  summary: 'Mint an API key; its token is shown once',
  about: 'The token is shown in this answer alone: what is kept of it cannot be turned back into it.',
  permissions: ['apikeys.manage'],
  quota: 'mint',
  body: z.strictObject({
    name: text(200).describe('1 to 200 characters, to tell keys apart by.'),
    scopes: z
      .array(z.string().max(100))
      .max(100)
      .default([])
      .describe('Permissions to grant; each must be held by the caller. GET /v1/permissions lists them.'),
    sandbox: z.boolean().default(false).describe('Mints a test key, which reaches the sandbox only.'),
    org_id: idSchema
      .nullable()
      .default(null)
      .describe("An organisation below the caller's own. Null: the caller's own."),
  }),
  example: { name: 'deploy', scopes: ['sites.view', 'hosting.backup.manage'], sandbox: false },
  response: { status: 201, schema: mintedApiKeySchema },
  hasClosedStatuses: true,
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
  query: pageQuerySchema.extend({
    org_id: idSchema
      .optional()
      .describe("Keys of this organisation only. Left out: of the caller's own and all below it."),
  }),
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
  response: { status: 200, schema: apiKeyDetailSchema },
  problems: [],
  tags,
});

export const updateApiKey = endpoint({
  id: 'updateApiKey',
  service: 'keys',
  method: 'PATCH',
  path: '/v1/api-keys/{keyId}',
  summary:
    'Change the name of a key, take permissions from it, or bound its time and its addresses; ' +
    'no request begun after the answer is judged by what was before',
  permissions: ['apikeys.manage'],
  params: { keyId },
  body: z.strictObject({
    name: text(200).optional().describe('1 to 200 characters, to tell keys apart by.'),
    scopes: z
      .array(z.string().max(100))
      .max(100)
      .optional()
      .describe('All permissions that it shall keep; each must be one of those that it has.'),
    expires_at: z.iso
      .datetime({ offset: true })
      .nullable()
      .optional()
      .describe('A moment to come, as RFC 3339; null for never. It does not lengthen the grace time of a rotated key.'),
    allowed_ips: allowedIpsSchema
      .optional()
      .describe(`Addresses and networks from which it can be used, at most ${allowedIpsMax}; an empty list for any.`),
  }),
  example: { name: 'deploy', allowed_ips: ['203.0.113.0/24', '2001:db8::/32'] },
  response: { status: 200, schema: apiKeyDetailSchema },
  problems: ['scope_widened', 'scope_not_held', 'own_limits'],
  tags,
});

export const revokeApiKey = endpoint({
  id: 'revokeApiKey',
  service: 'keys',
  method: 'DELETE',
  path: '/v1/api-keys/{keyId}',
  summary: 'Revoke a key: no request begun after the answer succeeds with it',
  about: 'It cannot be undone. Work that was accepted before goes on.',
  permissions: ['apikeys.manage'],
  params: { keyId },
  response: { status: 204 },
  problems: ['scope_not_held'],
  tags,
});

/** The longest time for which the old token may stay valid after a rotation. */
const graceSecondsMax = 7 * 24 * 3600;

export const rotateApiKey = endpoint({
  id: 'rotateApiKey',
  service: 'keys',
  method: 'POST',
  path: '/v1/api-keys/{keyId}/rotate',
  summary: 'Replace a key by a new one of the same rights; the old one works on for a grace time',
  about: 'The new token is shown in this answer alone.',
  permissions: ['apikeys.manage'],
  quota: 'mint',
  params: { keyId },
  body: z.strictObject({
    grace_seconds: z
      .int()
      .min(0)
      .max(graceSecondsMax)
      .default(3600)
      .describe('Seconds for which the old token works on, up to 604,800 (7 days).'),
  }),
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
        key: apiKeySchema.describe('The calling key.'),
        org: z
          .strictObject({
            id: uuidSchema.describe('The organisation.'),
            name: z.string().describe("The organisation's name."),
          })
          .meta({ id: 'KeyOrg' })
          .describe('Its organisation.'),
        scopes: z
          .array(z.string())
          .describe('What the key may do now: its scopes that its organisation and all above it hold.'),
        mode: modeSchema.describe('live, or sandbox for a test key.'),
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
  response: {
    status: 200,
    schema: pageOf(
      z
        .strictObject({
          key: z.string().describe('The permission, as scopes name it.'),
          meaning: z.string().describe('What it allows.'),
          held: z.boolean().describe('Whether the calling key may exercise it.'),
        })
        .meta({ id: 'ListedPermission' }),
    ),
  },
  problems: [],
  tags,
});
