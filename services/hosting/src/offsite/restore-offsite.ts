import type { restoreSiteOffsite as endpoint } from '@drydock/contracts/hosting/offsite';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import type { Refusal } from '@drydock/workflow/definition/refusal.rules';
import { acceptWorkflow, assertAllowed, followHeaders } from '@drydock/workflow/http/accept-workflow';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { holdSite, readSite } from '../sites/find-site';
import { changeStatus } from '../sites/site.store';
import { readListPage } from '../sites/site-list';
import { onSite, sitePath } from '../sites/site-names';
import { findNamed, lookAtStorage } from './look-at-storage';
import { refuseRestore } from './offsite.rules';
import { copyList, readOffsiteState, readOffsiteWorld } from './offsite-state';
import { restoreOffsiteWorkflow } from './restore-offsite.workflow';

/**
 * Accepts a restore of the site to the named copy and all that it depends on, which {@link restoreOffsiteWorkflow}
 * carries out.
 */
export const restoreOffsite = (context: HandlerContext) =>
  ({
    preload: async (request) =>
      lookAtStorage(context, await readSite(context, request), request.body.copy_id, request.now),
    execute: async (tx: Tx, request, storageRefusal) => {
      const site = await holdSite(tx, request);
      const world = await readOffsiteWorld(context, tx, site);
      const copy = findNamed(world.copies, request.body.copy_id);
      assertAllowed(refuseRestore(world, copy) ?? storageRefusal);
      if (world.destination === null || copy === null) throw new Error('a restore was allowed without a copy');
      const input = {
        copyId: copy.id,
        destinationId: world.destination.id,
        safetyCopyId: uuidv7(),
        platform: site.platform,
        statusBefore: site.status,
        ...request.query,
      };
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onSite(site.id),
        definition: restoreOffsiteWorkflow,
        input,
        action: 'offsite.restore',
      });
      await changeStatus(tx, site.id, 'restoring');
      const state = await readOffsiteState(
        context,
        tx,
        site,
        readListPage(context, copyList, { ...request, query: {} }),
      );
      return {
        status: 202,
        headers: followHeaders(sitePath(site.id), workflowId),
        body: { workflow_id: workflowId, state },
      };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, Refusal | null>;
