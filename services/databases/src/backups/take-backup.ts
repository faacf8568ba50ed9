import type { takeDatabaseBackup as endpoint } from '@drydock/contracts/databases/database-backups';
import type { ExecuteHandlers } from '@drydock/service/http';
import { acceptWorkflow, assertAllowed, assertFree, followHeaders } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { refuseUnavailable } from '../databases/database.rules';
import { databasePath, databaseResourceKey, onDatabase } from '../databases/database.types';
import { holdDatabase } from '../databases/find-database';
import { insertBackup } from './backup.store';
import { viewBackup } from './list-backups';
import { takeBackupWorkflow } from './take-backup.workflow';

export const takeBackup = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const managed = await holdDatabase(tx, request);
      await assertFree(context.database.sql(tx), databaseResourceKey(managed.id));
      assertAllowed(refuseUnavailable(managed));
      const backup = {
        id: uuidv7(),
        databaseId: managed.id,
        kind: 'on_demand' as const,
        engineVersion: managed.engineVersion,
        createdAt: request.now,
      };
      const input = { backupId: backup.id };
      const acceptance = {
        ...onDatabase(managed.id),
        definition: takeBackupWorkflow,
        input,
        action: 'database_backup.take',
      };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      await insertBackup(tx, backup);
      const view = viewBackup({
        ...backup,
        status: 'queued',
        sequence: 0,
        archive: null,
        proof: null,
        completedAt: null,
      });
      const body = { ...view, workflow_id: workflowId };
      return { status: 202, headers: followHeaders(databasePath(managed.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
