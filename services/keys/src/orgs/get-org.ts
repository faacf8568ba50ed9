import type { getOrg as endpoint } from '@drydock/contracts/orgs';
import { problem } from '@drydock/contracts/problem';
import type { ReadHandlers } from '@drydock/service-kit/route';
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
