import type { upgradeDatabase as endpoint } from '@drydock/contracts/databases/database-upgrades';
import { type Major, majorOf } from '@drydock/contracts/databases/major';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { acceptWorkflow, assertAllowedOn, followHeaders } from '@drydock/workflow/http/accept-workflow';
import { uuidv7 } from 'uuidv7';
import { insertBackup } from '../backups/backup.store';
import { versionsOf } from '../catalogue/catalogue';
import { majorsFor } from '../catalogue/get-catalogue';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { changeStatus } from '../databases/database.store';
import { viewDatabase } from '../databases/database.view';
import { databasePath, databaseResourceKey, onDatabase } from '../databases/database-names';
import { holdDatabase } from '../databases/find-database';
import { refuseUpgrade } from './upgrade.rules';
import { upgradeDatabaseWorkflow } from './upgrade-database.workflow';

/** Accepts an upgrade of the database to a newer major, which {@link upgradeDatabaseWorkflow} carries out. */
export const upgradeDatabase = (context: HandlerContext) =>
  ({
    preload: ({ body }) => majorsFor(context, { engine: 'mysql', engine_version: body.engine_version }),
    execute: async (tx: Tx, request, majors) => {
      const { body: asked, now } = request;
      const managed = await holdDatabase(tx, request);
      const world = { managed, versions: versionsOf(managed.engine, majors) };
      const refuse = (unfinished: UnfinishedWorkflow | null) =>
        refuseUpgrade({ ...world, unfinished }, asked.engine_version);
      await assertAllowedOn(context.database.sql(tx), databaseResourceKey(managed.id), refuse);
      const [backupId, newBackupId] = [uuidv7(), uuidv7()];
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onDatabase(managed.id),
        definition: upgradeDatabaseWorkflow,
        input: { toMajor: majorOf(asked.engine_version), fromVersion: managed.engineVersion, backupId, newBackupId },
        action: 'database.upgrade',
      });
      await insertBackup(tx, {
        id: backupId,
        databaseId: managed.id,
        kind: 'upgrade',
        engineVersion: managed.engineVersion,
        createdAt: now,
      });
      await changeStatus(tx, managed.id, 'provisioning');
      const body = viewDatabase({ ...managed, status: 'provisioning' });
      return { status: 202, headers: followHeaders(databasePath(managed.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, readonly Major[]>;
