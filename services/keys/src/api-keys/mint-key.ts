import {
  apiKeySchema,
  type createApiKey as createApiKeyEndpoint,
  type MintedApiKey,
  type rotateApiKey as rotateApiKeyEndpoint,
} from '@drydock/contracts/keys/api-keys';
import { formatToken } from '@drydock/contracts/platform/api-token';
import type { Permission } from '@drydock/contracts/platform/permissions';
import { problem } from '@drydock/contracts/platform/problem';
import { authorise, type Caller } from '@drydock/service/access';
import type { ExecuteHandlers, ReplaySecret } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { recordAudit } from '../audit/audit.store';
import { type HandlerContext, seenEverywhere } from '../context/context';
import type { Tx } from '../context/database.store';
import { allowedOf } from '../orgs/org.rules';
import { lockLineage } from '../orgs/org.store';
import type { KeySecrets } from '../secrets/api-key.secret';
import {
  type ApiKeyRecord,
  effectiveScopes,
  type KeyLimits,
  limitsOfRotation,
  normaliseScopes,
  refuseMint,
  refuseRotation,
} from './api-key.rules';
import { expireApiKey, holdRights, insertApiKey, lockApiKey } from './api-key.store';
import { viewMinted } from './list-api-keys';

/**
 * Reads and locks the rights and limits of the calling key. The gateway may have verified the key up to 1 s ago.
 * Without another check here, a key that was revoked since then could still mint a key. Throws 401 if the calling key
 * is revoked or expired, and 403 if it may no longer manage keys.
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
 * Keeps the token out of the stored answer. A replay derives the secret again from the Idempotency-Key, which only the
 * caller has.
 */
const replayToken = (
  secrets: KeySecrets,
): ReplaySecret<typeof createApiKeyEndpoint> & ReplaySecret<typeof rotateApiKeyEndpoint> => ({
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

interface MintingRequest {
  caller: Caller;
  idempotencyKey: string | undefined;
  now: Date;
}

async function mintKey(
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

export const createApiKey = ({ secrets }: HandlerContext) =>
  ({
    execute: async (tx, request) => {
      const { caller, body, now } = request;
      const { name, scopes, sandbox, org_id } = body;
      const { held, ...limits } = await holdCreator(tx, caller);
      const orgId = org_id ?? caller.orgId;
      const lineage = await lockLineage(tx, caller.orgId, orgId);
      const targetAllows = lineage === null ? null : allowedOf(lineage);
      const refusal = refuseMint({ callerMode: caller.mode, held, targetAllows, scopes, sandbox });
      if (refusal !== null) throw refusal;
      const mode = sandbox ? ('sandbox' as const) : ('live' as const);
      const minted = await mintKey(tx, secrets, request, {
        orgId,
        name,
        scopes: normaliseScopes(scopes),
        mode,
        ...limits,
      });
      await recordAudit(tx, caller, { orgId, action: 'api_key.create', target: minted.headers.location, at: now });
      return minted;
    },
    replaySecret: replayToken(secrets),
  }) satisfies ExecuteHandlers<typeof createApiKeyEndpoint, Tx, void>;

/** Makes a new key with the present rights of the old key. The old key stays valid for the grace time. */
export const rotateApiKey = (context: HandlerContext) =>
  ({
    execute: async (tx, request) => {
      const { params, caller, body, now } = request;
      // The old key is locked before the calling key. Otherwise two calls of a key that replaces itself could deadlock.
      const old = await lockApiKey(tx, caller, params.keyId);
      const { held, ...own } = await holdCreator(tx, caller);
      if (old === null) throw problem('api_key_not_found');
      const scopes = effectiveScopes(old);
      const refusal = refuseRotation(scopes, held);
      if (refusal !== null) throw refusal;
      const { orgId, name, mode } = old;
      const minted = await mintKey(tx, context.secrets, request, {
        orgId,
        name,
        scopes,
        mode,
        ...limitsOfRotation(old, own),
      });
      await expireApiKey(tx, old.id, body.grace_seconds);
      await recordAudit(tx, caller, { orgId, action: 'api_key.rotate', target: `/v1/api-keys/${old.id}`, at: now });
      return minted;
    },
    beforeAnswer: async ({ body }) => {
      if (body.grace_seconds === 0) await seenEverywhere(context);
    },
    replaySecret: replayToken(context.secrets),
  }) satisfies ExecuteHandlers<typeof rotateApiKeyEndpoint, Tx, void>;
