import type { preflightDeletedSiteRestore as endpoint } from '@drydock/contracts/hosting/deleted-sites';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ReadHandlers } from '@drydock/service/http/route';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findingOfContents } from '../backups/preflight-restore.view';
import { findingsOfSkipped } from '../backups/skipped.view';
import { neededBytes } from '../backups/space.rules';
import type { HandlerContext } from '../context';
import { mayOfferDatabase } from '../sites/offers-platform';
import { findingsOfRecord } from '../sites/probe.rules';
import { purgeDueAt } from './deleted-site.rules';
import { deletedSitePath } from './deleted-site-names';
import { readDeletedSite } from './find-deleted-site';
import { judgeDeletedSite } from './judge-deleted-site';
import { lookForObject } from './look-for-object';
import { refuseRevival } from './refuse-revival';

/** Closer than this to its purge, a deleted site gets a warning. */
const soonMs = 3 * 86_400_000;

/** The preflight of the restore of a deleted site: asks the same rule and changes nothing. */
export const preflightDeletedSite = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, now, query, requestId } = request;
      const record = await readDeletedSite(context, request);
      const [{ backup, hasObject }, isDatabaseOffered] = await Promise.all([
        lookForObject(context, record, request),
        mayOfferDatabase(context, record),
      ]);
      const reason = await judgeDeletedSite(context.database.pool, record, { caller, hasObject, now });
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
        // Free space is not shown, because a deleted site has no host yet.
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
  }) satisfies ReadHandlers<typeof endpoint>;
