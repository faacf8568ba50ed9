import type { preflightSiteBackupRestore, restoreSiteBackup } from '@drydock/contracts/hosting/backups';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http/route';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { acceptWorkflow, assertAllowedOn, followHeaders, problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { describeSite } from '../providers/site-host';
import { holdSite, readSite } from '../sites/find-site';
import { changeStatus } from '../sites/site.store';
import { onSite, sitePath, siteResourceKey } from '../sites/site.types';
import { readListPage } from '../sites/site-list';
import { refuseRestore } from './backup.rules';
import { findBackup } from './backup.store';
import { backupList, readSurface, readSurfaceRows } from './backup-surface';
import { viewPreflight } from './preflight-restore.view';
import { restoreBackupWorkflow } from './restore-backup.workflow';

/**
 * The preflight of a restore: asks the same rule and changes nothing. A host that does not answer is a finding, not a
 * failure.
 */
export const preflightRestore = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, body, query, requestId } = request;
      const { database, siteHosts, backupStorage } = context;
      const site = await readSite(context, request);
      const backup = await findBackup(database.pool, site, body.backup_id);
      const unfinished = await findUnfinished(database.sql(), siteResourceKey(site.id));
      const refusal = refuseRestore({ site, unfinished }, backup, now);
      const [hosted, isStored] = await Promise.all([
        describeSite(siteHosts, site).catch(() => null),
        backup === null || backup.archive === null
          ? false
          : backupStorage.has(backup.archive.storageKey).catch(() => false),
      ]);
      const archive = backup?.archive ?? null;
      const isMissing = archive !== null && !isStored;
      const facts = {
        site,
        contents: query.contents,
        point: backup,
        rawBytes: archive?.rawBytes ?? null,
        freeBytes: hosted?.freeBytes ?? null,
        isMissing,
        ...(backup !== null && { skipped: backup.skipped, answer: backup.answer }),
      };
      return {
        status: 200,
        body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId), now),
      };
    },
  }) satisfies ReadHandlers<typeof preflightSiteBackupRestore>;

/** Endpoint 3: accepts a restore of the site to the named backup, which {@link restoreBackupWorkflow} carries out. */
export const restoreBackup = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { now, body } = request;
      const site = await holdSite(tx, request);
      const page = readListPage(context, backupList, { ...request, query: {} });
      const rows = await readSurfaceRows(tx, site, page);
      // The backup to restore is usually on the page that the answer needs anyway, which saves a query.
      const backup = rows.find(({ id }) => id === body.backup_id) ?? (await findBackup(tx, site, body.backup_id));
      const refuse = (unfinished: UnfinishedWorkflow | null) => refuseRestore({ site, unfinished }, backup, now);
      await assertAllowedOn(context.database.sql(tx), siteResourceKey(site.id), refuse);
      const input = {
        backupId: body.backup_id,
        safetyCopyId: uuidv7(),
        platform: site.platform,
        statusBefore: site.status,
        ...request.query,
      };
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onSite(site.id),
        definition: restoreBackupWorkflow,
        input,
        action: 'backup.restore',
      });
      await changeStatus(tx, site.id, 'restoring');
      const accepted = { id: workflowId, kind: restoreBackupWorkflow.kind, status: 'queued' as const };
      const known = { rows, unfinished: accepted };
      const surface = await readSurface(context, tx, { ...site, status: 'restoring' }, page, { known });
      return { status: 202, headers: followHeaders(sitePath(site.id), workflowId), body: surface };
    },
  }) satisfies ExecuteHandlers<typeof restoreSiteBackup, Tx, undefined>;
