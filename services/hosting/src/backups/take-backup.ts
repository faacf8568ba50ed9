import type { takeSiteBackup as endpoint } from '@drydock/contracts/hosting/backups';
import type { ExecuteHandlers } from '@drydock/service/http';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowedOn, followHeaders } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { onSite, sitePath, siteResourceKey } from '../sites/site.types';
import { holdSite, readListPage } from '../sites/site-record';
import { allowanceOf, allowanceWindowStart, refuseBackup } from './backup.rules';
import { insertBackup, listOnDemand } from './backup.store';
import { backupList, readSurface, readSurfaceRows } from './backup-surface';
import { takeBackupWorkflow } from './take-backup.workflow';

export const takeBackup = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { now } = request;
      const site = await holdSite(tx, request);
      const allowance = allowanceOf(await listOnDemand(tx, site.id, allowanceWindowStart(now)), now);
      const refuse = (unfinished: UnfinishedWorkflow | null) => refuseBackup({ site, unfinished }, allowance, now);
      await assertAllowedOn(context.database.sql(tx), siteResourceKey(site.id), refuse);
      const backupId = uuidv7();
      const input = { backupId, platform: site.platform };
      const acceptance = { ...onSite(site.id), definition: takeBackupWorkflow, input, action: 'backup.take' };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      const location = context.backupStorage.locationIn(site.mode);
      await insertBackup(tx, site, {
        id: backupId,
        siteId: site.id,
        kind: 'on_demand',
        workflowId,
        createdAt: now,
        location,
      });
      const page = readListPage(context, backupList, request);
      const accepted = { id: workflowId, kind: takeBackupWorkflow.kind, status: 'queued' as const };
      const known = { rows: await readSurfaceRows(tx, site, page), unfinished: accepted };
      const surface = await readSurface(context, tx, site, page, { known });
      return { status: 202, headers: followHeaders(sitePath(site.id), workflowId), body: surface };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
