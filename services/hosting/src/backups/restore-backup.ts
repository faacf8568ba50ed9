import type { restoreSiteBackup as endpoint } from '@drydock/contracts/hosting/backups';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { acceptWorkflow, assertAllowedOn, followHeaders } from '@drydock/workflow/http/accept-workflow';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { holdSite } from '../sites/find-site';
import { changeStatus } from '../sites/site.store';
import { readListPage } from '../sites/site-list';
import { onSite, sitePath, siteResourceKey } from '../sites/site-names';
import { refuseRestore } from './backup.rules';
import { findBackup } from './backup.store';
import { backupList, readSurface, readSurfaceRows } from './backup-surface';
import { restoreBackupWorkflow } from './restore-backup.workflow';

/** Accepts a restore of the site to the named backup, which {@link restoreBackupWorkflow} carries out. */
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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
