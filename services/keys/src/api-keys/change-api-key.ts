import type {
  revokeApiKey as revokeApiKeyEndpoint,
  updateApiKey as updateApiKeyEndpoint,
} from '@drydock/contracts/keys/api-keys';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import { recordAudit } from '../audit/audit.store';
import { type HandlerContext, seenEverywhere } from '../context/context';
import type { Tx } from '../context/database.store';
import { normaliseScopes, refuseChange, refuseRevocation } from './api-key.rules';
import { changeApiKey, lockApiKey, revokeApiKey as revokeRow } from './api-key.store';
import { viewDetail } from './list-api-keys';
import { holdCreator } from './mint-key';

/** Changes a key. The key keeps its token and gets no new right. */
export const updateApiKey = (context: HandlerContext) =>
  ({
    execute: async (tx, { params, caller, body, now, assertMatch }) => {
      // The locks are taken in the same order as in a rotation, so that a change and a rotation cannot deadlock.
      const old = await lockApiKey(tx, caller, params.keyId);
      const { held, ...callerLimits } = await holdCreator(tx, caller);
      if (old === null) throw problem('api_key_not_found');
      await assertMatch(() => viewDetail(old));
      const expiresAt = readExpiry(body.expires_at, now);
      const isBounded = body.scopes !== undefined || expiresAt !== undefined || body.allowed_ips !== undefined;
      const refusal =
        refuseChange(
          { old, isCaller: old.id === caller.keyId, held, callerLimits },
          { ...body, expiresAt, allowedIps: body.allowed_ips },
        ) ??
        // Taking away scopes, time or addresses can amount to a revocation, so the rule for revocations applies.
        (isBounded ? refuseRevocation(old, { keyId: caller.keyId, scopes: held }) : null);
      if (refusal !== null) throw refusal;
      const changed = {
        name: body.name ?? old.name,
        scopes: body.scopes === undefined ? old.scopes : normaliseScopes(body.scopes),
        expiresAt: expiresAt === undefined ? old.expiresAt : expiresAt,
        allowedIps: body.allowed_ips === undefined ? old.allowedIps : [...new Set(body.allowed_ips)],
      };
      await changeApiKey(tx, old.id, changed);
      await recordAudit(tx, caller, {
        orgId: old.orgId,
        action: 'api_key.update',
        target: `/v1/api-keys/${old.id}`,
        at: now,
      });
      return { status: 200, body: viewDetail({ ...old, ...changed }) };
    },
    // A change of the name alone changes no rights, so no gateway has to learn of it.
    beforeAnswer: async ({ body: { name: _name, ...bounds } }) => {
      if (Object.keys(bounds).length > 0) await seenEverywhere(context);
    },
  }) satisfies ExecuteHandlers<typeof updateApiKeyEndpoint, Tx, void>;

/**
 * Undefined if the expiry does not change, and null if the key shall not expire. Throws `invalid_request` for a time in
 * the past.
 */
function readExpiry(given: string | null | undefined, now: Date): Date | null | undefined {
  if (given === undefined || given === null) return given;
  const end = new Date(given);
  if (end > now) return end;
  const detail = 'Name a moment that is still to come. DELETE revokes the key at once.';
  throw problem('invalid_request', { errors: [{ pointer: '/expires_at', code: 'past', detail }] });
}

export const revokeApiKey = (context: HandlerContext) =>
  ({
    execute: async (tx, { params, caller, now }) => {
      const found = await lockApiKey(tx, caller, params.keyId);
      if (found === null) throw problem('api_key_not_found');
      const refusal = refuseRevocation(found, caller);
      if (refusal !== null) throw refusal;
      const key = await revokeRow(tx, caller, params.keyId);
      if (key === null) throw problem('api_key_not_found');
      await recordAudit(tx, caller, {
        orgId: key.orgId,
        action: 'api_key.revoke',
        target: `/v1/api-keys/${key.id}`,
        at: now,
      });
      return { status: 204 };
    },
    beforeAnswer: () => seenEverywhere(context),
  }) satisfies ExecuteHandlers<typeof revokeApiKeyEndpoint, Tx, void>;
