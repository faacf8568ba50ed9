import type { updateComputeServer as endpoint } from '@drydock/contracts/compute/compute-servers';
import { audit } from '@drydock/service/effects';
import { changeMetadata, type ExecuteHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { holdServer } from './find-server';
import { describeServer } from './server.store';
import { serverPath } from './server.types';
import { viewServer } from './server.view';

/**
 * Changes the name and metadata of our record; the machine keeps its own name. The row is locked, so that of two
 * changes at once neither is lost.
 */
export const updateServer = ({ database, targets }: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller, now } = request;
      const held = await holdServer(tx, request);
      const { id, name, metadata } = held;
      await request.assertMatch(() => viewServer(held, targets, now));
      const server = await describeServer(tx, id, {
        name: body.name ?? name,
        metadata: changeMetadata(metadata, body.metadata),
      });
      const { orgId, mode, keyId: actorKeyId } = caller;
      await audit(database.sql(tx), {
        orgId,
        mode,
        actorKeyId,
        action: 'server.update',
        target: serverPath(id),
        workflowId: null,
      });
      return { status: 200, body: viewServer(server, targets, now) };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
