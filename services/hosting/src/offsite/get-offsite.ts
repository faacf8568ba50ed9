import type { getSiteOffsite as endpoint } from '@drydock/contracts/hosting/offsite';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { readSite } from '../sites/find-site';
import { readListPage } from '../sites/site-list';
import { copyList, readOffsiteState } from './offsite-state';

export const getOffsite = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const page = readListPage(context, copyList, request);
      const site = await readSite(context, request);
      return { status: 200, body: await readOffsiteState(context, context.database.pool, site, page) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
