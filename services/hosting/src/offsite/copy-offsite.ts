import type { takeSiteOffsiteCopy as endpoint } from '@drydock/contracts/hosting/offsite';
import type { ExecuteHandlers } from '@drydock/service/http';
import { acceptWorkflow, assertAllowed, followHeaders } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { onSite, sitePath } from '../sites/site.types';
import { holdSite, readListPage } from '../sites/site-record';
import { copyOffsiteWorkflow } from './copy-offsite.workflow';
import { copyToTake, refuseCopy } from './offsite.rules';
import { insertCopy } from './offsite.store';
import { copyList, readOffsiteState, readOffsiteWorld } from './offsite-state';

export const copyOffsite = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const asked = request.body.kind;
      const site = await holdSite(tx, request);
      const world = await readOffsiteWorld(context, tx, site);
      assertAllowed(refuseCopy(world, asked));
      const { destination } = world;
      if (destination === null) throw new Error('a copy was allowed without a destination');
      const { kind, parentId } = copyToTake(world.copies, asked);
      const copyId = uuidv7();
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onSite(site.id),
        definition: copyOffsiteWorkflow,
        input: { copyId, destinationId: destination.id, kind, platform: site.platform },
        action: 'offsite.copy',
      });
      await insertCopy(tx, destination, { id: copyId, kind, parentId, workflowId, createdAt: request.now });
      const state = await readOffsiteState(context, tx, site, readListPage(context, copyList, request));
      return {
        status: 202,
        headers: followHeaders(sitePath(site.id), workflowId),
        body: { ...state, workflow_id: workflowId },
      };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
