import type { restoreDatabaseBackup as endpoint } from '@drydock/contracts/databases/database-backups';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { acceptWorkflow, assertAllowedOn, followHeaders } from '@drydock/workflow/http/accept-workflow';
import { uuidv7 } from 'uuidv7';
import { findBackup } from '../backups/backup.store';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { changeStatus } from '../databases/database.store';
import { viewDatabase } from '../databases/database.view';
import { databasePath, databaseResourceKey, onDatabase } from '../databases/database-names';
import { holdDatabase } from '../databases/find-database';
import { refuseRestore } from './restore.rules';
import { restoreDatabaseWorkflow } from './restore-database.workflow';

/** Accepts that the database is replaced by one of its backups, which {@link restoreDatabaseWorkflow} carries out. */
export const restoreDatabase = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { backupId } = request.params;
      const managed = await holdDatabase(tx, request);
      const backup = backupId === '' ? null : await findBackup(tx, managed.id, backupId);
      const refuse = (unfinished: UnfinishedWorkflow | null) => refuseRestore({ managed, unfinished }, backup);
      await assertAllowedOn(context.database.sql(tx), databaseResourceKey(managed.id), refuse);
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onDatabase(managed.id),
        definition: restoreDatabaseWorkflow,
        input: { backupId, safetyCopyId: uuidv7() },
        action: 'database_backup.restore',
      });
      await changeStatus(tx, managed.id, 'provisioning');
      const body = viewDatabase({ ...managed, status: 'provisioning' });
      return { status: 202, headers: followHeaders(databasePath(managed.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
