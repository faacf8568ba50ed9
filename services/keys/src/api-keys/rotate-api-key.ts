import type { rotateApiKey as endpoint } from '@drydock/contracts/keys/api-keys';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import { recordAudit } from '../audit/audit.store';
import { type HandlerContext, seenEverywhere } from '../context/context';
import type { Tx } from '../context/database.store';
import { effectiveScopes, limitsOfRotation, refuseRotation } from './api-key.rules';
import { expireApiKey, lockApiKey } from './api-key.store';
import { holdCreator, mintKey, replayToken } from './mint-key';

/** Makes a new key with the present rights of the old one, which stays valid for the grace time. */
export const rotateApiKey = (context: HandlerContext) =>
  ({
    execute: async (tx, request) => {
      const { params, caller, body, now } = request;
      // The old key is locked before the caller's own. Otherwise a key that replaces itself could deadlock with a
      // second such call.
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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, void>;
