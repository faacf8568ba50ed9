import type { listSiteBackups as endpoint, getSiteBackup } from '@drydock/contracts/hosting/backups';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { readSite } from '../sites/find-site';
import { readListPage } from '../sites/site-list';
import { findBackup } from './backup.store';
import { viewBackup } from './backup.view';
import { backupList, readSurface } from './backup-surface';

export const listBackups = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const page = readListPage(context, backupList, request);
      const { cursor: _cursor, limit: _limit, ...filter } = request.query;
      const site = await readSite(context, request);
      return { status: 200, body: await readSurface(context, context.database.pool, site, page, { filter }) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

export const getBackup = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const backup = await findBackup(context.database.pool, site, request.params.backupId);
      if (backup === null) throw problem('site_backup_not_found');
      return { status: 200, body: viewBackup(backup, request.now) };
    },
  }) satisfies ReadHandlers<typeof getSiteBackup>;
