import type {
  DeletedSiteReason,
  preflightDeletedSiteRestore,
  restoreDeletedSite as restoreDeletedSiteEndpoint,
} from '@drydock/contracts/hosting/deleted-sites';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { type Refusal, refusalByWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowed, followHeaders, problemOf, type WorkTarget } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import { neededBytes } from '../backups/backup.rules';
import { findingOfContents } from '../backups/restore-backup';
import { findingsOfSkipped } from '../backups/skipped.view';
import type { HandlerContext } from '../context/context';
import type { Reader, Tx } from '../context/database.store';
import { mayOfferDatabase, offersPlatform } from '../sites/create-site';
import { findingsOfRecord } from '../sites/probe.rules';
import { siteResourceKey } from '../sites/site.types';
import { type DeletedSite, deletedSitePath, deletedSiteSubject, purgeDueAt } from './deleted-site.rules';
import { isLetGo, reviveSite, setRestoredAt } from './deleted-site.store';
import {
  checkDeletedSite,
  holdDeletedSite,
  lookForObject,
  readDeletedSite,
  viewDeletedSite,
} from './deleted-site-record';
import { restoreDeletedSiteWorkflow } from './restore-deleted-site.workflow';

/**
 * The reason why a deleted site cannot be restored now; null if there is none. While an earlier restore is rebuilding
 * the site, the refusal names the workflow of that restore. Once that restore has released the site to its visitors,
 * the refusal is `already_restored`, which comes from `reason`.
 */
async function refuseRevival(
  context: HandlerContext,
  tx: Reader,
  { platform, mode, siteId }: DeletedSite,
  { reason, isDatabaseOffered }: { reason: DeletedSiteReason; isDatabaseOffered: boolean },
): Promise<Refusal | null> {
  const unfinished = await findUnfinished(context.database.sql(tx), siteResourceKey(siteId));
  const isRebuilding = unfinished?.kind === restoreDeletedSiteWorkflow.kind && !(await isLetGo(tx, siteId));
  if (isRebuilding) return refusalByWorkflow(unfinished);
  if (reason !== '') return { code: reason, extra: { reason_code: reason } };
  if (!offersPlatform(context, platform, mode)) return { code: 'platform_unavailable' };
  return isDatabaseOffered ? null : { code: 'site_database_not_offered' };
}

/** A site whose purge is nearer than this gets a warning. */
const soonMs = 3 * 86_400_000;

/** Decides by the same rule as the restore, and changes nothing. */
export const preflightDeletedSite = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, now, query, requestId } = request;
      const record = await readDeletedSite(context, request);
      const [{ backup, hasObject }, isDatabaseOffered] = await Promise.all([
        lookForObject(context, record, request),
        mayOfferDatabase(context, record),
      ]);
      const reason = await checkDeletedSite(context.database.pool, record, { caller, hasObject, now });
      const refusal = await refuseRevival(context, context.database.pool, record, { reason, isDatabaseOffered });
      const dueAt = purgeDueAt(record);
      const isSoon = reason === '' && dueAt.getTime() - now.getTime() < soonMs;
      const body: Preflight = {
        would: `Make ${record.primaryDomain} again from its last backup; it is suspended until it serves`,
        resource: deletedSitePath(record.id),
        point:
          backup === null
            ? null
            : {
                id: backup.id,
                taken_at: backup.createdAt.toISOString(),
                age_seconds: Math.max(0, Math.floor((now.getTime() - backup.createdAt.getTime()) / 1_000)),
              },
        // No free space is shown, because a deleted site is on no host.
        space: backup?.archive == null ? null : { needed_bytes: neededBytes(backup.archive), free_bytes: null },
        refusal: refusal === null ? null : problemOf(refusal).body(requestId),
        findings: [
          ...(isSoon
            ? [
                {
                  level: 'WARNING' as const,
                  code: 'purge_due_soon',
                  detail: `Its backup is purged at ${dueAt.toISOString()}.`,
                },
              ]
            : []),
          ...(backup === null
            ? []
            : [
                ...findingsOfSkipped(backup.skipped),
                ...findingsOfRecord(backup.answer, 'HTTP may answer anything (the site is suspended until it serves)'),
                findingOfContents(query.contents, 'is empty'),
              ]),
        ],
        undo: false,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof preflightDeletedSiteRestore>;

/**
 * Makes the row of the site and marks the record as restored, in one transaction. {@link restoreDeletedSiteWorkflow}
 * rebuilds the site.
 */
export const restoreDeletedSite = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const record = await readDeletedSite(context, request);
      const [{ hasObject }, isDatabaseOffered] = await Promise.all([
        lookForObject(context, record, request),
        mayOfferDatabase(context, record),
      ]);
      return { hasObject, isDatabaseOffered };
    },
    execute: async (tx: Tx, request, { hasObject, isDatabaseOffered }) => {
      const { caller, now } = request;
      const record = await holdDeletedSite(tx, request);
      const reason = await checkDeletedSite(tx, record, { caller, hasObject, now });
      assertAllowed(await refuseRevival(context, tx, record, { reason, isDatabaseOffered }));
      if (!(await reviveSite(tx, record))) throw problem('domain_in_use', { extra: { reason_code: 'domain_in_use' } });
      const { siteId, backupId, platform, primaryDomain: domain } = record;
      if (backupId === null) throw new Error('a restore was allowed without a backup');
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onRecord(record),
        definition: restoreDeletedSiteWorkflow,
        input: { siteId, backupId, platform, domain, ...request.query },
        action: 'deleted_site.restore',
      });
      await setRestoredAt(tx, record.id, now);
      const headers = followHeaders(deletedSitePath(record.id), workflowId);
      return { status: 202, headers, body: viewDeletedSite({ ...record, restoredAt: now }, 'already_restored') };
    },
  }) satisfies ExecuteHandlers<
    typeof restoreDeletedSiteEndpoint,
    Tx,
    { hasObject: boolean; isDatabaseOffered: boolean }
  >;

/**
 * The subject is the record of the deletion. The resource key is the site's, because the site exists again and other
 * work on it must wait for the restore.
 */
const onRecord = ({ id, siteId }: DeletedSite): WorkTarget => ({
  resourceKey: siteResourceKey(siteId),
  subject: deletedSiteSubject(id),
  path: deletedSitePath(id),
});
