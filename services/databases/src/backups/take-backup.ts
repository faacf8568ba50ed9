import type { takeDatabaseBackup as endpoint } from '@drydock/contracts/database-backups';
import type { ActHandlers } from '@drydock/service-kit/route';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { acceptWorkflow, followHeaders } from '../database-workflows/accept-workflow';
import { assertAllowed } from '../database-workflows/refuse';
import { findUnfinished } from '../database-workflows/unfinished.store';
import { refusalByWorkflow, refuseUnavailable } from '../databases/database.rules';
import { holdDatabase } from '../databases/find-database';
import { insertBackup } from './backup.store';
import { viewBackup } from './backup.view';
import { takeBackupHead } from './take-backup.head';

export const takeBackup = (context: HandlerContext) =>
  ({
    act: async (tx: Tx, request) => {
      const managed = await holdDatabase(tx, request);
      assertAllowed(refusalByWorkflow(await findUnfinished(tx, managed.id)) ?? refuseUnavailable(managed));
      const backup = { id: uuidv7(), databaseId: managed.id, engineVersion: managed.engineVersion, createdAt: request.now };
      const acceptance = { definition: takeBackupHead, input: { backupId: backup.id }, action: 'database_backup.take' };
      const workflowId = await acceptWorkflow(context, tx, request, managed.id, acceptance);
      await insertBackup(tx, backup);
      const body = viewBackup({ ...backup, status: 'queued', sequence: 0, archive: null, completedAt: null });
      return { status: 202, headers: followHeaders(managed.id, workflowId), body };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, undefined>;
