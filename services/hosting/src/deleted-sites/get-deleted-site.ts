import type { getDeletedSite as endpoint } from '@drydock/contracts/hosting/deleted-sites';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { viewDeletedSite } from './deleted-site.view';
import { readDeletedSite } from './find-deleted-site';
import { judgeDeletedSite } from './judge-deleted-site';
import { lookForObject } from './look-for-object';

export const getDeletedSite = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, now } = request;
      const record = await readDeletedSite(context, request);
      const { hasObject } = await lookForObject(context, record, request);
      return {
        status: 200,
        body: viewDeletedSite(
          record,
          await judgeDeletedSite(context.database.pool, record, { caller, hasObject, now }),
        ),
      };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
