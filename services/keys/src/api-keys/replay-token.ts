import type { createApiKey, MintedApiKey, rotateApiKey } from '@drydock/contracts/keys/api-keys';
import { apiKeySchema } from '@drydock/contracts/keys/api-keys';
import { formatToken } from '@drydock/contracts/platform/api-token';
import type { ReplaySecret } from '@drydock/service/http/route';
import type { KeySecrets } from './api-key.secret';

/** The stored answer has no token; a replay derives the secret again from what only the caller has: its Idempotency-Key. */
export const replayToken = (secrets: KeySecrets): ReplaySecret<typeof createApiKey> & ReplaySecret<typeof rotateApiKey> => ({
  remove: ({ token: _token, ...key }: MintedApiKey) => key,
  rehydrate: (stored, rawIdempotencyKey, request): MintedApiKey => {
    const key = apiKeySchema.parse(stored);
    const secret = secrets.newSecret({ callerKeyId: request.caller.keyId, rawIdempotencyKey, recordId: key.id });
    return { ...key, token: formatToken({ mode: key.sandbox ? 'sandbox' : 'live', prefix: key.prefix, secret }) };
  },
});
