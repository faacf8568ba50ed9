import type { DeletedSiteReason } from '@drydock/contracts/hosting/deleted-sites';
import type { Caller } from '@drydock/service/access/internal-token';
import type { Reader } from '../database.store';
import { isHeld, listHeldDomains } from '../domains/domain.store';
import { reasonNotRestorable } from './deleted-site.rules';
import type { DeletedSite } from './deleted-site.types';
import { isStaff } from './find-deleted-site';

/** The reason why `caller` cannot restore it now, as `tx` sees the world; '' if they can. */
export async function judgeDeletedSite(
  tx: Reader,
  record: DeletedSite,
  { caller, hasObject, now }: { caller: Caller; hasObject: boolean; now: Date },
): Promise<DeletedSiteReason> {
  const held = await listHeldDomains(tx, record, [record.primaryDomain]);
  return reasonNotRestorable({ record, hasObject, isDomainHeld: isHeld(held, record), isStaff: isStaff(caller) }, now);
}
