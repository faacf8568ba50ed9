import {
  type DeletedSiteReason,
  type DeletedSiteView,
  type getDeletedSite as getDeletedSiteEndpoint,
  listDeletedSites as listDeletedSitesEndpoint,
} from '@drydock/contracts/hosting/deleted-sites';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import { listFilter, type ReadHandlers } from '@drydock/service/http';
import type { WorkflowParent } from '@drydock/workflow/http';
import type { Backup } from '../backups/backup.rules';
import { findBackup } from '../backups/backup.store';
import type { HandlerContext } from '../context/context';
import type { Reader, Tx } from '../context/database.store';
import { isHeld, listHeldDomains } from '../sites/site.store';
import { ownerOf } from '../sites/site.types';
import {
  type DeletedSite,
  deletedSiteSubject,
  needsObject,
  purgeDueAt,
  reasonNotRestorable,
} from './deleted-site.rules';
import { findDeletedSite, listDeletedSites as listRows, lockDeletedSite } from './deleted-site.store';

interface AboutDeletedSite {
  caller: Caller;
  params: { deletedSiteId: string };
}

/** Reads a deleted site of the caller. A missing record and a record of another organisation give the same 404. */
export async function readDeletedSite(
  context: HandlerContext,
  { caller, params }: AboutDeletedSite,
): Promise<DeletedSite> {
  return present(await findDeletedSite(context.database.pool, ownerOf(caller), params.deletedSiteId));
}

/** Works like {@link readDeletedSite}, and locks the row until the transaction ends. */
export async function holdDeletedSite(tx: Tx, { caller, params }: AboutDeletedSite): Promise<DeletedSite> {
  return present(await lockDeletedSite(tx, ownerOf(caller), params.deletedSiteId));
}

const isStaff = ({ scopes }: Caller): boolean => scopes.includes('platform.staff');

function present(record: DeletedSite | null): DeletedSite {
  if (record === null) throw problem('deleted_site_not_found');
  return record;
}

/** The API lists the workflows that restore a deleted site below the path of its record. */
export const deletedSiteParent = (context: HandlerContext): WorkflowParent<Tx, 'deletedSiteId'> => ({
  context,
  param: 'deletedSiteId',
  subjectOf: deletedSiteSubject,
  assertThere: (caller, deletedSiteId) => readDeletedSite(context, { caller, params: { deletedSiteId } }),
});

/** The reason why `caller` cannot restore the site now; '' if there is none. */
export async function checkDeletedSite(
  tx: Reader,
  record: DeletedSite,
  { caller, hasObject, now }: { caller: Caller; hasObject: boolean; now: Date },
): Promise<DeletedSiteReason> {
  const held = await listHeldDomains(tx, record, [record.primaryDomain]);
  return reasonNotRestorable({ record, hasObject, isDomainHeld: isHeld(held, record), isStaff: isStaff(caller) }, now);
}

interface LastBackup {
  backup: Backup | null;
  /** Whether the storage has just confirmed that it holds the last backup. */
  hasObject: boolean;
}

/** `caller` matters because staff may also restore a site that is held for abuse. */
interface Asking {
  caller: Caller;
  now: Date;
}

/**
 * Asks the storage whether it holds the last backup. The storage is not asked if `reasonNotRestorable` refuses the
 * restore for a reason that it checks before the backup. Throws 503 if the storage does not answer.
 */
export async function lookForObject(
  { database, backupStorage }: Pick<HandlerContext, 'database' | 'backupStorage'>,
  record: DeletedSite,
  { caller, now }: Asking,
): Promise<LastBackup> {
  if (record.backupId === null || !needsObject({ record, isStaff: isStaff(caller) }, now))
    return { backup: null, hasObject: false };
  const backup = await findBackup(database.pool, { ...record, id: record.siteId }, record.backupId);
  if (backup?.archive == null || backup.status !== 'completed') return { backup, hasObject: false };
  const hasObject = await backupStorage.has(backup.archive.storageKey).catch((error: unknown) => {
    throw problem('dependency_unavailable', {
      extra: { dependency: 'backup-storage' },
      retryAfterSeconds: 5,
      cause: error,
    });
  });
  return { backup, hasObject };
}

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
          await checkDeletedSite(context.database.pool, record, { caller, hasObject, now }),
        ),
      };
    },
  }) satisfies ReadHandlers<typeof getDeletedSiteEndpoint>;

/** How many backups of a page are looked up in the storage at the same time. */
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

/** The DeletedSite of interface.md 2.5. */
export const viewDeletedSite = (record: DeletedSite, reasonCode: DeletedSiteReason): DeletedSiteView => ({
  id: record.id,
  site_id: record.siteId,
  org_id: record.orgId,
  primary_domain: record.primaryDomain,
  reason: record.reason,
  deleted_at: record.deletedAt.toISOString(),
  deleted_by: record.deletedBy,
  purge_due_at: purgeDueAt(record).toISOString(),
  // From `purgedAt` on the site cannot be restored, but its data is gone only at `dataRemovedAt`. `purged_at` of the
  // API is the time at which the data was removed.
  purged_at: record.dataRemovedAt?.toISOString() ?? null,
  restored_at: record.restoredAt?.toISOString() ?? null,
  restorable: reasonCode === '',
  reason_code: reasonCode,
});
