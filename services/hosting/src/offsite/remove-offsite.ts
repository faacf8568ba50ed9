import type { deleteSiteOffsite as endpoint } from '@drydock/contracts/hosting/offsite';
import { audit } from '@drydock/service/effects/audit';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { assertFree } from '@drydock/workflow/http/accept-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { holdSite } from '../sites/find-site';
import { sitePath, siteResourceKey } from '../sites/site-names';
import { removeActive } from './destination.store';

/**
 * Removes the destination of a site's copies. The objects in the customer's storage stay, because they are the
 * customer's. A site without a destination is no error.
 */
export const removeOffsite = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const site = await holdSite(tx, request);
      const sql = context.database.sql(tx);
      await assertFree(sql, siteResourceKey(site.id));
      if (await removeActive(tx, site.id)) {
        const { orgId, mode, keyId: actorKeyId } = request.caller;
        await audit(sql, {
          orgId,
          mode,
          actorKeyId,
          action: 'offsite.remove',
          target: sitePath(site.id),
          workflowId: null,
        });
      }
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
