import { type BackupFilter, listSiteBackups, type SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context/context';
import type { Reader } from '../context/database.store';
import { type Site, siteResourceKey } from '../sites/site.types';
import type { ListPage } from '../sites/site-list';
import { allowanceWindowStart } from './backup.rules';
import { listBackups, listOnDemand } from './backup.store';
import type { Backup } from './backup.types';
import { viewBackup, viewSurface } from './backup.view';

/** The list that the cursors of a surface belong to, whichever endpoint returned them. */
export const backupList = listSiteBackups.id;

/** The rows that a request has read, or written, in its own transaction when it accepted work on a site. */
interface KnownOfSurface {
  /** As {@link readSurfaceRows} gives them. */
  rows: readonly Backup[];
  unfinished: UnfinishedWorkflow;
}

export const readSurfaceRows = (
  tx: Reader,
  site: Site,
  { asked }: ListPage,
  filter: BackupFilter = {},
): Promise<Backup[]> => listBackups(tx, site.id, { after: asked.after, take: asked.limit + 1 }, filter);

/**
 * The surface as `tx` sees it: in a request's transaction it includes the work that was just accepted. `known` is not
 * read again. `filter` narrows the backups only.
 */
export async function readSurface(
  context: Pick<HandlerContext, 'database' | 'proofs'>,
  tx: Reader,
  site: Site,
  listPage: ListPage,
  { filter = {}, known }: { filter?: BackupFilter; known?: KnownOfSurface } = {},
): Promise<SiteBackupSurface> {
  const { asked, pageOf, now } = listPage;
  const [unfinished, rows, proofs] = await Promise.all([
    known?.unfinished ?? findUnfinished(context.database.sql(tx), siteResourceKey(site.id)),
    known?.rows ?? readSurfaceRows(tx, site, listPage, filter),
    context.proofs.read(site.mode),
  ]);
  // A first page that is neither full nor filtered holds every backup that the allowance counts.
  const isWhole = Object.keys(filter).length === 0 && asked.after === null && rows.length <= asked.limit;
  const onDemand = isWhole ? rows : await listOnDemand(tx, site.id, allowanceWindowStart(now));
  const { data: backups, page } = pageOf(rows, (backup) => viewBackup(backup, now));
  return viewSurface({ site, backups, page, onDemand, unfinished, proofs }, now);
}
