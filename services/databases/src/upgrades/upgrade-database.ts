import type { upgradeDatabase as endpoint } from '@drydock/contracts/database-upgrades';
import type { ActHandlers } from '@drydock/service-kit/route';
import { uuidv7 } from 'uuidv7';
import { insertBackup } from '../backups/backup.store';
import { versionsOf } from '../catalogue/catalogue';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { acceptWorkflow, followHeaders } from '../database-workflows/accept-workflow';
import { assertAllowed } from '../database-workflows/refuse';
import { findUnfinished } from '../database-workflows/unfinished.store';
import { changeStatus } from '../databases/database.store';
import { viewDatabase } from '../databases/database.view';
import { holdDatabase } from '../databases/find-database';
import { refuseUpgrade } from './upgrade.rules';
import { upgradeDatabaseHead } from './upgrade-database.head';

/** Endpoint 10: accepts that the database is moved to a newer major; {@link upgradeDatabaseHead} does it. */
export const upgradeDatabase = (context: HandlerContext) =>
  ({
    act: async (tx: Tx, request) => {
      const { body, now } = request;
      const managed = await holdDatabase(tx, request);
      const unfinished = await findUnfinished(tx, managed.id);
      assertAllowed(refuseUpgrade({ managed, unfinished, versions: versionsOf(managed.engine) ?? [] }, body.engine_version));
      const [backupId, newBackupId] = [uuidv7(), uuidv7()];
      const workflowId = await acceptWorkflow(context, tx, request, managed.id, {
        definition: upgradeDatabaseHead,
        input: { toMajor: Number(body.engine_version), fromVersion: managed.engineVersion, backupId, newBackupId },
        action: 'database.upgrade',
      });
      await insertBackup(tx, { id: backupId, databaseId: managed.id, engineVersion: managed.engineVersion, createdAt: now });
      await changeStatus(tx, managed.id, 'provisioning');
      return { status: 202, headers: followHeaders(managed.id, workflowId), body: viewDatabase({ ...managed, status: 'provisioning' }) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, undefined>;
