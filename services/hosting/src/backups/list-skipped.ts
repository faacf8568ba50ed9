import type { listSiteBackupSkipped as endpoint } from '@drydock/contracts/hosting/backups';
import { listSiteBackupSkipped } from '@drydock/contracts/hosting/backups';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { readSite } from '../sites/find-site';
import { findBackup } from './backup.store';
import { listSkipped, type SkippedRow } from './skipped.store';

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
  }) satisfies ReadHandlers<typeof endpoint>;
