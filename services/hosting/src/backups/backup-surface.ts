import { listSiteBackups, type SiteBackupSurface } from '@drydock/contracts/backups';
import { findUnfinished } from '@drydock/workflow/find-unfinished';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import type { Site } from '../sites/site.types';
import type { ListPage } from '../sites/site-list';
import { siteResourceKey } from '../sites/site-names';
import { allowanceWindowStart } from './backup.rules';
import { listBackups, listOnDemand } from './backup.store';
import { viewBackup } from './backup.view';
import { viewSurface } from './backup-surface.view';

/** The list that a surface's cursors belong to, whoever answered with them. */
export const backupList = listSiteBackups.id;

/** The surface as `tx` sees it: within a request's transaction, with what it has just accepted. */
export async function readSurface(
  context: Pick<HandlerContext, 'database' | 'proofs'>,
  tx: Tx,
  site: Site,
  { asked, pageOf, now }: ListPage,
): Promise<SiteBackupSurface> {
  const [unfinished, rows, onDemand, proofs] = await Promise.all([
    findUnfinished(context.database.sql(tx), siteResourceKey(site.id)),
    listBackups(tx, site.id, { after: asked.after, take: asked.limit + 1 }),
    listOnDemand(tx, site.id, allowanceWindowStart(now)),
    context.proofs.read(site.mode),
  ]);
  const { data: backups, page } = pageOf(rows, (backup) => viewBackup(backup, now));
  return viewSurface({ site, backups, page, onDemand, unfinished, proofs }, now);
}
