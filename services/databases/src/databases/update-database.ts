import type { updateDatabase as endpoint } from '@drydock/contracts/databases/databases';
import { audit } from '@drydock/service/effects';
import { changeMetadata, type ExecuteHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { describeDatabase } from './database.store';
import { databasePath } from './database.types';
import { holdDatabase, viewDatabase } from './find-database';

/** Changes the label and metadata. The row is locked, so that of two changes at once neither is lost. */
export const updateDatabase = ({ database }: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller } = request;
      const held = await holdDatabase(tx, request);
      const { id, label, metadata } = held;
      await request.assertMatch(() => viewDatabase(held));
      const managed = await describeDatabase(tx, id, {
        label: body.label ?? label,
        metadata: changeMetadata(metadata, body.metadata),
      });
      const { orgId, mode, keyId: actorKeyId } = caller;
      await audit(database.sql(tx), {
        orgId,
        mode,
        actorKeyId,
        action: 'database.update',
        target: databasePath(id),
        workflowId: null,
      });
      return { status: 200, body: viewDatabase(managed) };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
