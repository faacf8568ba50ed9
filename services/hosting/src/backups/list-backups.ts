import { type getSiteBackup, listSiteBackupSkipped, type listSiteBackups } from '@drydock/contracts/hosting/backups';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { readSite } from '../sites/find-site';
import { readListPage } from '../sites/site-list';
import { findBackup, listSkipped, type SkippedRow } from './backup.store';
import { backupList, readSurface, viewBackup } from './backup-surface';

/** Lists page by page the paths that a backup of the caller's site left out. */
export const listBackupSkipped = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, query, now, params } = request;
      const { pager, database } = context;
      const binding = {
        list: listSiteBackupSkipped.id,
        keyId: caller.keyId,
        filter: `${caller.orgId}:${caller.mode}:${params.backupId}`,
      };
      const page = pager.read(query, binding, now);
      const site = await readSite(context, request);
      const backup = await findBackup(database.pool, site, params.backupId);
      if (backup === null) throw problem('site_backup_not_found');
      const after = page.after === null ? -1 : Number(page.after);
      const rows = await listSkipped(database.pool, backup.id, { after, take: page.limit + 1 });
      const give = {
        positionOf: ({ position }: SkippedRow) => String(position),
        view: ({ path, reason }: SkippedRow) => ({ path, reason }),
      };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, give) };
    },
  }) satisfies ReadHandlers<typeof listSiteBackupSkipped>;

export const listBackups = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const page = readListPage(context, backupList, request);
      const { cursor: _cursor, limit: _limit, ...filter } = request.query;
      const site = await readSite(context, request);
      return { status: 200, body: await readSurface(context, context.database.pool, site, page, { filter }) };
    },
  }) satisfies ReadHandlers<typeof listSiteBackups>;

export const getBackup = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const backup = await findBackup(context.database.pool, site, request.params.backupId);
      if (backup === null) throw problem('site_backup_not_found');
      return { status: 200, body: viewBackup(backup, request.now) };
    },
  }) satisfies ReadHandlers<typeof getSiteBackup>;
