import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import { type HandlerContext, ownerOf } from '../context';
import type { Tx } from '../database.store';
import { findDeletedSite, lockDeletedSite } from './deleted-site.store';
import type { DeletedSite } from './deleted-site.types';

interface AboutDeletedSite {
  caller: Caller;
  params: { deletedSiteId: string };
}

/** The caller's record. Throws the same 404 in every other case. */
export async function readDeletedSite(
  context: HandlerContext,
  { caller, params }: AboutDeletedSite,
): Promise<DeletedSite> {
  return present(await findDeletedSite(context.database.pool, ownerOf(caller), params.deletedSiteId));
}

/** The same, with the row locked until the transaction ends. */
export async function holdDeletedSite(tx: Tx, { caller, params }: AboutDeletedSite): Promise<DeletedSite> {
  return present(await lockDeletedSite(tx, ownerOf(caller), params.deletedSiteId));
}

export const isStaff = ({ scopes }: Caller): boolean => scopes.includes('platform.staff');

function present(record: DeletedSite | null): DeletedSite {
  if (record === null) throw problem('deleted_site_not_found');
  return record;
}
