import type { getOrg as endpoint } from '@drydock/contracts/keys/orgs';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { assertLiveCaller } from './live-caller';
import { findOrg } from './org.store';
import { viewOrg } from './org.view';

export const getOrg = ({ database }: HandlerContext) =>
  ({
    read: async ({ caller, params }) => {
      assertLiveCaller(caller);
      const org = await findOrg(database.pool, caller.orgId, params.orgId);
      if (org === null) throw problem('org_not_found');
      return { status: 200, body: viewOrg(org) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
