import { setTimeout as wait } from 'node:timers/promises';
import type { revokeApiKey as endpoint } from '@drydock/contracts/api-keys';
import { problem } from '@drydock/contracts/problem';
import type { SettleHandlers } from '@drydock/service-kit/route';
import { recordAudit } from '../audit/audit.store';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { revokeApiKey as revokeRow } from './api-key.store';

/** Commits, then waits until no gateway trusts an older verification any more, and only then answers. */
export const revokeApiKey = ({ revocationWaitMs }: HandlerContext) =>
  ({
    act: async (tx, { params, caller, now }) => {
      const key = await revokeRow(tx, caller, params.keyId);
      if (key === null) throw problem('api_key_not_found');
      await recordAudit(tx, caller, { orgId: key.orgId, action: 'api_key.revoke', target: `/v1/api-keys/${key.id}`, at: now });
      return {};
    },
    settle: async () => {
      await wait(revocationWaitMs);
      return { status: 204 };
    },
  }) satisfies SettleHandlers<typeof endpoint, Tx, void, object>;
