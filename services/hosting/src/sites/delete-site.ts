import type { deleteSite as endpoint } from '@drydock/contracts/sites';
import type { ActHandlers } from '@drydock/service-kit/route';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { acceptWorkflow, followHeaders } from '../site-workflows/accept-workflow';
import { assertAllowed } from '../site-workflows/refuse';
import { findUnfinished } from '../site-workflows/unfinished.store';
import { deleteSiteHead } from './delete-site.head';
import { holdSite } from './find-site';
import { refusalByWorkflow } from './site.rules';
import { changeStatus } from './site.store';
import { viewSite } from './site.view';

export const deleteSite = (context: HandlerContext) =>
  ({
    act: async (tx: Tx, request) => {
      const site = await holdSite(tx, request);
      assertAllowed(refusalByWorkflow(await findUnfinished(tx, site.id)));
      const input = {
        backupId: uuidv7(),
        deletedSiteId: uuidv7(),
        deletedBy: request.caller.keyId,
        platform: site.platform,
        statusBefore: site.status,
      };
      const workflowId = await acceptWorkflow(context, tx, request, site, { definition: deleteSiteHead, input, action: 'site.delete' });
      await changeStatus(tx, site.id, 'deleting');
      return { status: 202, headers: followHeaders(site.id, workflowId), body: viewSite({ ...site, status: 'deleting' }) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, undefined>;
