import type { listSiteBackups as endpoint } from '@drydock/contracts/backups';
import type { ReadHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import { readSite } from '../sites/find-site';
import { readSurface } from './backup-surface';

export const listBackups = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      return { status: 200, body: await readSurface(context, context.database.pool, site, request.now) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
