import type { getApiKey as endpoint } from '@drydock/contracts/api-keys';
import { problem } from '@drydock/contracts/problem';
import type { ReadHandlers } from '@drydock/service-kit/route';
import { type HandlerContext, visibleModes } from '../context';
import { findApiKey } from './api-key.store';
import { viewApiKey } from './api-key.view';

export const getApiKey = ({ database }: HandlerContext) =>
  ({
    read: async ({ params, caller, now }) => {
      const key = await findApiKey(database.pool, { orgId: caller.orgId, modes: visibleModes(caller) }, params.keyId, now);
      if (key === null) throw problem('api_key_not_found');
      return { status: 200, body: viewApiKey(key) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
