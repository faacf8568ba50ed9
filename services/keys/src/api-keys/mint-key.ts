import {
  apiKeySchema,
  type createApiKey,
  type MintedApiKey,
  type rotateApiKey,
} from '@drydock/contracts/keys/api-keys';
import { formatToken } from '@drydock/contracts/platform/api-token';
import type { Permission } from '@drydock/contracts/platform/permissions';
import { problem } from '@drydock/contracts/platform/problem';
import { authorise, type Caller } from '@drydock/service/access';
import type { ReplaySecret } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import type { Tx } from '../context/database.store';
import type { KeySecrets } from '../secrets/api-key.secret';
import { effectiveScopes } from './api-key.rules';
import { holdRights, insertApiKey } from './api-key.store';
import type { ApiKeyRecord, KeyLimits } from './api-key.types';
import { viewMinted } from './api-key.view';

/**
 * Reads and locks the rights and limits of the calling key, in the transaction that mints the new key. The gateway may
 * have verified the calling key up to a second ago. Without this second check, a key that was revoked in that second
 * could mint a new one, which would outlive the revocation. Throws 401 if the key is gone, and 403 if it may not mint
 * any more.
 */
export async function holdCreator(tx: Tx, caller: Caller): Promise<KeyLimits & { held: Permission[] }> {
  const rights = await holdRights(tx, caller.keyId);
  if (rights === null) throw problem('unauthenticated', { internal: 'the calling key is revoked or unknown' });
  const held = effectiveScopes(rights).filter((scope) => caller.scopes.includes(scope));
  authorise(['apikeys.manage'], { ...caller, scopes: held });
  return { held, expiresAt: rights.expiresAt, allowedIps: rights.allowedIps };
}

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

/** The part of a request that a new key depends on. */
interface MintingRequest {
  caller: Caller;
  idempotencyKey: string | undefined;
  now: Date;
}

/** Inserts a key with these rights and makes its answer, the only place where its token appears. */
export async function mintKey(
  tx: Tx,
  secrets: KeySecrets,
  { caller, idempotencyKey, now }: MintingRequest,
  key: Pick<ApiKeyRecord, 'orgId' | 'name' | 'scopes' | 'mode'> & KeyLimits,
): Promise<{ status: 201; headers: { location: string }; body: MintedApiKey }> {
  const id = uuidv7();
  const prefix = secrets.newPrefix();
  const origin =
    idempotencyKey === undefined
      ? null
      : { callerKeyId: caller.keyId, rawIdempotencyKey: idempotencyKey, recordId: id };
  const secret = secrets.newSecret(origin);
  const record = await insertApiKey(tx, {
    ...key,
    id,
    prefix,
    createdBy: caller.keyId,
    createdAt: now,
    ...secrets.hash(secret),
  });
  const body = viewMinted(record, formatToken({ mode: key.mode, prefix, secret }));
  return { status: 201, headers: { location: `/v1/api-keys/${id}` }, body };
}
