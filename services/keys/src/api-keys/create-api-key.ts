import type { createApiKey as endpoint } from '@drydock/contracts/keys/api-keys';
import type { ExecuteHandlers } from '@drydock/service/http';
import { recordAudit } from '../audit/audit.store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { allowedOf } from '../orgs/org.rules';
import { lockLineage } from '../orgs/org.store';
import { normaliseScopes, refuseMint } from './api-key.rules';
import { holdCreator, mintKey, replayToken } from './mint-key';

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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, void>;
