import * as databaseBackups from '@drydock/contracts/databases/database-backups';
import * as databaseUpgrades from '@drydock/contracts/databases/database-upgrades';
import * as databases from '@drydock/contracts/databases/databases';
import { databaseQuota } from '@drydock/contracts/platform/quotas';
import { getQuota, type Route, route, setQuota } from '@drydock/service/http';
import { abandonWorkflow, getWorkflow, listWorkflows, retryWorkflow, watchWorkflow } from '@drydock/workflow/http';
import { deleteBackup, getBackup, listBackups, takeBackup } from './backups/manage-backups';
import { getCatalogue } from './catalogue/catalogue';
import type { HandlerContext } from './context/context';
import type { Tx } from './context/database.store';
import { databaseParent, getDatabase, listDatabases, updateDatabase } from './databases/database-record';
import { getDatabaseStorage } from './databases/storage';
import { createDatabase } from './lifecycle/create-database';
import { deleteDatabase, preflightDeletion } from './lifecycle/delete-database';
import { preflightRestore, restoreDatabase } from './restores/restore-database';
import { preflightUpgrade, upgradeDatabase } from './upgrades/upgrade-database';
import { abandoned } from './workflows';

const { databaseWorkflows } = databases;

export const routes = (context: HandlerContext): Route<Tx>[] => [
  route(databases.getDatabaseCatalogue, getCatalogue(context)),
  route(databases.listDatabases, listDatabases(context)),
  route(databases.createDatabase, createDatabase(context)),
  route(databaseQuota.get, getQuota(context)),
  route(databaseQuota.set, setQuota(context, databaseQuota.get.path)),
  route(databases.getDatabase, getDatabase(context)),
  route(databases.getDatabaseStorage, getDatabaseStorage(context)),
  route(databases.updateDatabase, updateDatabase(context)),
  route(databases.deleteDatabase, deleteDatabase(context)),
  route(databases.preflightDatabaseDeletion, preflightDeletion(context)),
  route(databaseBackups.listDatabaseBackups, listBackups(context)),
  route(databaseBackups.getDatabaseBackup, getBackup(context)),
  route(databaseBackups.takeDatabaseBackup, takeBackup(context)),
  route(databaseBackups.deleteDatabaseBackup, deleteBackup(context)),
  route(databaseBackups.restoreDatabaseBackup, restoreDatabase(context)),
  route(databaseBackups.preflightDatabaseBackupRestore, preflightRestore(context)),
  route(databaseUpgrades.upgradeDatabase, upgradeDatabase(context)),
  route(databaseUpgrades.preflightDatabaseUpgrade, preflightUpgrade(context)),
  route(databaseWorkflows.list, listWorkflows(databaseParent(context), databaseWorkflows.list)),
  route(databaseWorkflows.get, getWorkflow(databaseParent(context))),
  route(databaseWorkflows.watch, watchWorkflow(databaseParent(context))),
  route(databaseWorkflows.retry, retryWorkflow(databaseParent(context))),
  route(databaseWorkflows.abandon, abandonWorkflow(databaseParent(context), abandoned)),
];
