import type { getMe as endpoint } from '@drydock/contracts/keys/api-keys';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { findOrg } from '../orgs/org.store';
import { findApiKey } from './api-key.store';
import { viewApiKey } from './api-key.view';

export const getMe = ({ database }: HandlerContext) =>
  ({
    read: async ({ caller }) => {
      const [key, org] = await Promise.all([
        findApiKey(database.pool, caller, caller.keyId),
        findOrg(database.pool, caller.orgId, caller.orgId),
      ]);
      // The key was revoked between the gateway's check and this read.
      if (key === null || org === null) throw problem('unauthenticated');
      const scopes = [...caller.scopes];
      return {
        status: 200,
        body: { key: viewApiKey(key), org: { id: org.id, name: org.name }, scopes, mode: caller.mode },
      };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
