import type { getApiKey as endpoint } from '@drydock/contracts/keys/api-keys';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { findApiKey } from './api-key.store';
import { viewDetail } from './api-key.view';

export const getApiKey = ({ database }: HandlerContext) =>
  ({
    read: async ({ params, caller }) => {
      const key = await findApiKey(database.pool, caller, params.keyId);
      if (key === null) throw problem('api_key_not_found');
      return { status: 200, body: viewDetail(key) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
