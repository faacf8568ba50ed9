import type { DeletedSiteReason } from '@drydock/contracts/deleted-sites';
import type { Caller } from '@drydock/service-kit/internal-token';
import type { Tx } from '../database.store';
import { reasonNotRestorable } from './deleted-site.rules';
import { listHeldDomains } from './deleted-site.store';
import type { DeletedSite } from './deleted-site.types';
import { isStaff } from './find-deleted-site';

/** Whether `caller` could bring it back now, as `tx` sees the world; '' when they could. */
export async function judgeDeletedSite(
  tx: Tx,
  record: DeletedSite,
  { caller, hasObject, now }: { caller: Caller; hasObject: boolean; now: Date },
): Promise<DeletedSiteReason> {
  const held = await listHeldDomains(tx, record.mode, [record.primaryDomain]);
  return reasonNotRestorable({ record, hasObject, isDomainHeld: held.size > 0, isStaff: isStaff(caller) }, now);
}
