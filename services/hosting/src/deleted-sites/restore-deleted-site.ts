import type { restoreDeletedSite as endpoint } from '@drydock/contracts/hosting/deleted-sites';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { acceptWorkflow, assertAllowed, followHeaders, type WorkTarget } from '@drydock/workflow/http/accept-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { mayOfferDatabase } from '../sites/offers-platform';
import { siteResourceKey } from '../sites/site-names';
import { setRestoredAt } from './deleted-site.store';
import type { DeletedSite } from './deleted-site.types';
import { viewDeletedSite } from './deleted-site.view';
import { deletedSitePath, deletedSiteSubject } from './deleted-site-names';
import { holdDeletedSite, readDeletedSite } from './find-deleted-site';
import { judgeDeletedSite } from './judge-deleted-site';
import { lookForObject } from './look-for-object';
import { refuseRevival } from './refuse-revival';
import { restoreDeletedSiteWorkflow } from './restore-deleted-site.workflow';
import { reviveSite } from './revived-site.store';

/**
 * Reserves the domain and marks the record in one transaction; {@link restoreDeletedSiteWorkflow} rebuilds the site.
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
      const reason = await judgeDeletedSite(tx, record, { caller, hasObject, now });
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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, { hasObject: boolean; isDatabaseOffered: boolean }>;

/**
 * The target has the resource key of the site, because the record is a site again from here on. No other work may touch
 * it before the restore has ended.
 */
const onRecord = ({ id, siteId }: DeletedSite): WorkTarget => ({
  resourceKey: siteResourceKey(siteId),
  subject: deletedSiteSubject(id),
  path: deletedSitePath(id),
});
