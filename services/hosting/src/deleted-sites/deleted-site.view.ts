import type { DeletedSiteReason, DeletedSiteView } from '@drydock/contracts/hosting/deleted-sites';
import { purgeDueAt } from './deleted-site.rules';
import type { DeletedSite } from './deleted-site.types';

/** interface.md 2.5 */
export const viewDeletedSite = (record: DeletedSite, reasonCode: DeletedSiteReason): DeletedSiteView => ({
  id: record.id,
  site_id: record.siteId,
  org_id: record.orgId,
  primary_domain: record.primaryDomain,
  reason: record.reason,
  deleted_at: record.deletedAt.toISOString(),
  deleted_by: record.deletedBy,
  purge_due_at: purgeDueAt(record).toISOString(),
  // From `purgedAt` on it cannot be restored. Its data is gone only when the storage has released the last of it.
  purged_at: record.dataRemovedAt?.toISOString() ?? null,
  restored_at: record.restoredAt?.toISOString() ?? null,
  restorable: reasonCode === '',
  reason_code: reasonCode,
});
