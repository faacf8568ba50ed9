import type { deleteSite as endpoint } from '@drydock/contracts/hosting/sites';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { acceptWorkflow, assertFree, followHeaders } from '@drydock/workflow/http/accept-workflow';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { deleteSiteWorkflow } from './delete-site.workflow';
import { holdSite } from './find-site';
import { changeStatus } from './site.store';
import { viewSite } from './site.view';
import { onSite, sitePath, siteResourceKey } from './site-names';

export const deleteSite = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const site = await holdSite(tx, request);
      await assertFree(context.database.sql(tx), siteResourceKey(site.id));
      const input = {
        backupId: uuidv7(),
        deletedSiteId: uuidv7(),
        deletedBy: request.caller.keyId,
        platform: site.platform,
        statusBefore: site.status,
        takesBackup: request.query.last_backup === 'required',
      };
      const acceptance = { ...onSite(site.id), definition: deleteSiteWorkflow, input, action: 'site.delete' };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      await changeStatus(tx, site.id, 'deleting');
      const body = { ...viewSite({ ...site, status: 'deleting' }), workflow_id: workflowId };
      return { status: 202, headers: followHeaders(sitePath(site.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
