import type { revokeApiKey as endpoint } from '@drydock/contracts/keys/api-keys';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import { recordAudit } from '../audit/audit.store';
import { type HandlerContext, seenEverywhere } from '../context/context';
import type { Tx } from '../context/database.store';
import { refuseRevocation } from './api-key.rules';
import { lockApiKey, revokeApiKey as revokeRow } from './api-key.store';

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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, void>;
