import type { listSiteBackups as endpoint } from '@drydock/contracts/hosting/backups';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { readSite } from '../sites/find-site';
import { readListPage } from '../sites/site-list';
import { backupList, readSurface } from './backup-surface';

export const listBackups = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const page = readListPage(context, backupList, request);
      const site = await readSite(context, request);
      return { status: 200, body: await readSurface(context, context.database.pool, site, page) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
