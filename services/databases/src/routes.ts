import * as databaseBackups from '@drydock/contracts/database-backups';
import * as databaseUpgrades from '@drydock/contracts/database-upgrades';
import * as databaseWorkflows from '@drydock/contracts/database-workflows';
import * as databases from '@drydock/contracts/databases';
import { type Route, route } from '@drydock/service-kit/route';
import { listBackups } from './backups/list-backups';
import { takeBackup } from './backups/take-backup';
import { getCatalogue } from './catalogue/get-catalogue';
import type { HandlerContext } from './context';
import type { Tx } from './database.store';
import { abandonWorkflow } from './database-workflows/abandon-workflow';
import { getWorkflow } from './database-workflows/get-workflow';
import { listWorkflows } from './database-workflows/list-workflows';
import { retryWorkflow } from './database-workflows/retry-workflow';
import { watchWorkflow } from './database-workflows/watch-workflow';
import { createDatabase } from './databases/create-database';
import { deleteDatabase } from './databases/delete-database';
import { getDatabase } from './databases/get-database';
import { listDatabases } from './databases/list-databases';
import { preflightUpgrade } from './upgrades/preflight-upgrade';
import { upgradeDatabase } from './upgrades/upgrade-database';

export const routes = (context: HandlerContext): Route<Tx>[] => [
  route(databases.getDatabaseCatalogue, getCatalogue()),
  route(databases.listDatabases, listDatabases(context)),
  route(databases.createDatabase, createDatabase(context)),
  route(databases.getDatabase, getDatabase(context)),
  route(databases.deleteDatabase, deleteDatabase(context)),
  route(databaseBackups.listDatabaseBackups, listBackups(context)),
  route(databaseBackups.takeDatabaseBackup, takeBackup(context)),
  route(databaseUpgrades.upgradeDatabase, upgradeDatabase(context)),
  route(databaseUpgrades.preflightDatabaseUpgrade, preflightUpgrade(context)),
  route(databaseWorkflows.listDatabaseWorkflows, listWorkflows(context)),
  route(databaseWorkflows.getDatabaseWorkflow, getWorkflow(context)),
  route(databaseWorkflows.watchDatabaseWorkflow, watchWorkflow(context)),
  route(databaseWorkflows.retryDatabaseWorkflow, retryWorkflow(context)),
  route(databaseWorkflows.abandonDatabaseWorkflow, abandonWorkflow(context)),
];
