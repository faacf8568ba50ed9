import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import { type HandlerContext, ownerOf } from '../context';
import type { Tx } from '../database.store';
import { findSite, lockSite } from './site.store';
import type { Site } from './site.types';

interface AboutSite {
  caller: Caller;
  params: { siteId: string };
}

/** The caller's site. Throws the same 404 in every other case. */
export async function readSite(context: HandlerContext, { caller, params }: AboutSite): Promise<Site> {
  return present(await findSite(context.database.pool, ownerOf(caller), params.siteId));
}

/** The same, with the row locked until the transaction ends. */
export async function holdSite(tx: Tx, { caller, params }: AboutSite): Promise<Site> {
  return present(await lockSite(tx, ownerOf(caller), params.siteId));
}

function present(site: Site | null): Site {
  if (site === null) throw problem('site_not_found');
  return site;
}
