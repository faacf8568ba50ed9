import type { SiteBackupSurface } from '@drydock/contracts/backups';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { findUnfinished } from '../site-workflows/unfinished.store';
import type { Site } from '../sites/site.types';
import { listBackups } from './backup.store';
import { viewSurface } from './backup-surface.view';

/** The surface as `tx` sees it. */
export async function readSurface(context: Pick<HandlerContext, 'proofs'>, tx: Tx, site: Site, now: Date): Promise<SiteBackupSurface> {
  const unfinished = await findUnfinished(tx, site.id);
  const proofs = await context.proofs.read(site.mode);
  return viewSurface({ site, backups: await listBackups(tx, site.id), unfinished, proofs }, now);
}
