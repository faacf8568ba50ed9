import type { createApiKey as endpoint } from '@drydock/contracts/api-keys';
import { formatToken } from '@drydock/contracts/api-token';
import { problem } from '@drydock/contracts/problem';
import type { ActHandlers } from '@drydock/service-kit/route';
import { uuidv7 } from 'uuidv7';
import { recordAudit } from '../audit/audit.store';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { allowedOf } from '../orgs/org.rules';
import { findOrg, lockLineage } from '../orgs/org.store';
import { normaliseScopes, refuseMint } from './api-key.rules';
import { insertApiKey } from './api-key.store';
import { viewMinted } from './api-key.view';
import { replayToken } from './replay-token';

export const createApiKey = ({ secrets }: HandlerContext) =>
  ({
    act: async (tx, { caller, body, idempotencyKey, now }) => {
      const org = await findOrg(tx, caller.orgId, body.org_id ?? caller.orgId);
      const targetAllows = org === null ? null : allowedOf(await lockLineage(tx, org));
      const { scopes, sandbox } = body;
      const refusal = refuseMint({ callerMode: caller.mode, callerScopes: caller.scopes, targetAllows, scopes, sandbox });
      if (org === null || refusal !== null) throw refusal ?? problem('org_out_of_scope');
      const id = uuidv7();
      const prefix = secrets.newPrefix();
      const origin = idempotencyKey === undefined ? null : { callerKeyId: caller.keyId, rawIdempotencyKey: idempotencyKey, recordId: id };
      const secret = secrets.newSecret(origin);
      const mode = sandbox ? ('sandbox' as const) : ('live' as const);
      const key = await insertApiKey(tx, {
        id,
        orgId: org.id,
        name: body.name,
        prefix,
        scopes: normaliseScopes(scopes),
        mode,
        createdBy: caller.keyId,
        createdAt: now,
        ...secrets.hash(secret),
      });
      await recordAudit(tx, caller, { orgId: org.id, action: 'api_key.create', target: `/v1/api-keys/${id}`, at: now });
      const token = formatToken({ mode, prefix, secret });
      return { status: 201, headers: { location: `/v1/api-keys/${id}` }, body: viewMinted(key, token) };
    },
    replaySecret: replayToken(secrets),
  }) satisfies ActHandlers<typeof endpoint, Tx, void>;
