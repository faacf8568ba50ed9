import type { getSiteOffsite as endpoint } from '@drydock/contracts/offsite';
import type { ReadHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import { readSite } from '../sites/find-site';
import { readOffsiteState } from './offsite-state';

export const getOffsite = (context: HandlerContext) =>
  ({
    read: async (request) => ({
      status: 200,
      body: await readOffsiteState(context, context.database.pool, await readSite(context, request)),
    }),
  }) satisfies ReadHandlers<typeof endpoint>;
