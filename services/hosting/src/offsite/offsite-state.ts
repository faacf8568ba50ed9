import { getSiteOffsite, type SiteOffsite } from '@drydock/contracts/hosting/offsite';
import { findUnfinished, readWorkflowById } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Reader } from '../context/database.store';
import { type Site, siteResourceKey } from '../sites/site.types';
import type { ListPage } from '../sites/site-list';
import { listCopies } from './copy.store';
import { findActive } from './destination.store';
import type { OffsiteWorld } from './offsite.rules';
import { viewOffsite } from './offsite.view';
import { findLastRestore } from './restore.store';

/** The list that the cursors belong to, whichever endpoint returned them. */
export const copyList = getSiteOffsite.id;

/** The facts that the rules of offsite copies need, as `tx` sees them. */
export async function readOffsiteWorld(
  { database }: Pick<HandlerContext, 'database'>,
  tx: Reader,
  site: Site,
): Promise<OffsiteWorld> {
  const destination = await findActive(tx, site);
  const copies = destination === null ? [] : await listCopies(tx, destination);
  return { site, destination, copies, unfinished: await findUnfinished(database.sql(tx), siteResourceKey(site.id)) };
}

/** SiteOffsite as `tx` sees it: in a request's transaction it includes the work that was just accepted. */
export async function readOffsiteState(
  context: Pick<HandlerContext, 'database'>,
  tx: Reader,
  site: Site,
  page: ListPage,
): Promise<SiteOffsite> {
  const world = await readOffsiteWorld(context, tx, site);
  const last = await findLastRestore(tx, site);
  const found = last === null ? undefined : await readWorkflowById(context.database.sql(tx), last.workflowId);
  const restore = last === null || found === undefined ? null : { view: found.view, copyId: last.copyId };
  return viewOffsite({ ...world, restore }, page);
}
