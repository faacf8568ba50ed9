import type { SiteBackupSurface } from '@drydock/contracts/backups';
import { findUnfinished } from '@drydock/workflow/find-unfinished';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import type { Site } from '../sites/site.types';
import { siteResourceKey } from '../sites/site-names';
import { listBackups } from './backup.store';
import { viewSurface } from './backup-surface.view';

/** The surface as `tx` sees it. */
export async function readSurface(
  context: Pick<HandlerContext, 'database' | 'proofs'>,
  tx: Tx,
  site: Site,
  now: Date,
): Promise<SiteBackupSurface> {
  const unfinished = await findUnfinished(context.database.sql(tx), siteResourceKey(site.id));
  const proofs = await context.proofs.read(site.mode);
  return viewSurface({ site, backups: await listBackups(tx, site.id), unfinished, proofs }, now);
}
