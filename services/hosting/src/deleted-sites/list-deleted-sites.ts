import {
  type DeletedSiteReason,
  type DeletedSiteView,
  type getDeletedSite as getDeletedSiteEndpoint,
  listDeletedSites as listDeletedSitesEndpoint,
} from '@drydock/contracts/hosting/deleted-sites';
import { listFilter, type ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { isHeld, listHeldDomains } from '../domains/domain.store';
import { ownerOf } from '../sites/site.types';
import { purgeDueAt, reasonNotRestorable } from './deleted-site.rules';
import { listDeletedSites as listRows } from './deleted-site.store';
import type { DeletedSite } from './deleted-site.types';
import { type Asking, isStaff, judgeDeletedSite, lookForObject, readDeletedSite } from './find-deleted-site';

export const getDeletedSite = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, now } = request;
      const record = await readDeletedSite(context, request);
      const { hasObject } = await lookForObject(context, record, request);
      return {
        status: 200,
        body: viewDeletedSite(
          record,
          await judgeDeletedSite(context.database.pool, record, { caller, hasObject, now }),
        ),
      };
    },
  }) satisfies ReadHandlers<typeof getDeletedSiteEndpoint>;

/** The number of objects of one page that are looked up at once. */
const looksAtOnce = 10;

export const listDeletedSites = (context: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { pager, database } = context;
      const binding = { list: listDeletedSitesEndpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      const held = await listHeldDomains(
        database.pool,
        ownerOf(caller),
        rows.map(({ primaryDomain }) => primaryDomain),
      );
      const found = await lookForObjects(context, rows.slice(0, page.limit), { caller, now });
      const view = (record: DeletedSite) => {
        const world = {
          record,
          hasObject: found.has(record.id),
          isDomainHeld: isHeld(held, record),
          isStaff: isStaff(caller),
        };
        return viewDeletedSite(record, reasonNotRestorable(world, now));
      };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view }) };
    },
  }) satisfies ReadHandlers<typeof listDeletedSitesEndpoint>;

async function lookForObjects(
  context: HandlerContext,
  records: readonly DeletedSite[],
  asking: Asking,
): Promise<Set<string>> {
  const found = new Set<string>();
  for (let start = 0; start < records.length; start += looksAtOnce) {
    const some = records.slice(start, start + looksAtOnce);
    const looks = await Promise.all(some.map((record) => lookForObject(context, record, asking)));
    for (const [index, { hasObject }] of looks.entries()) if (hasObject) found.add(some[index]?.id ?? '');
  }
  return found;
}

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
