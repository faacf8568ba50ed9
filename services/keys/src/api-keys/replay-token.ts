import type { createApiKey, MintedApiKey, rotateApiKey } from '@drydock/contracts/keys/api-keys';
import { apiKeySchema } from '@drydock/contracts/keys/api-keys';
import { formatToken } from '@drydock/contracts/platform/api-token';
import type { ReplaySecret } from '@drydock/service/http/route';
import { z } from 'zod';
import type { KeySecrets } from './api-key.secret';

const storedSchema = apiKeySchema.extend({ made_with: z.string().optional() });

/**
 * The stored answer has no token. A replay derives the secret again from the Idempotency-Key, which only the caller
 * has.
 */
export const replayToken = (
  secrets: KeySecrets,
): ReplaySecret<typeof createApiKey> & ReplaySecret<typeof rotateApiKey> => ({
  remove: ({ token: _token, ...key }: MintedApiKey) => ({ ...key, made_with: secrets.madeWith }),
  rehydrate: (stored, rawIdempotencyKey, request): MintedApiKey => {
    const { made_with: madeWith, ...key } = storedSchema.parse(stored);
    const secret = secrets.deriveAgain(
      { callerKeyId: request.caller.keyId, rawIdempotencyKey, recordId: key.id },
      madeWith,
    );
    return { ...key, token: formatToken({ mode: key.sandbox ? 'sandbox' : 'live', prefix: key.prefix, secret }) };
  },
});
