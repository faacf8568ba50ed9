import {
  type deleteDatabaseBackup as deleteDatabaseBackupEndpoint,
  type getDatabaseBackup,
  listDatabaseBackups as listDatabaseBackupsEndpoint,
  onDemandKeptMax,
  onDemandLimit,
  type takeDatabaseBackup as takeDatabaseBackupEndpoint,
  type DatabaseBackup as View,
} from '@drydock/contracts/databases/database-backups';
import { problem } from '@drydock/contracts/platform/problem';
import { type ExecuteHandlers, listFilter, type ReadHandlers } from '@drydock/service/http';
import { type Refusal, refusalByWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowed, assertFree, followHeaders } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { refuseUnavailable } from '../databases/database.rules';
import { databasePath, databaseResourceKey, onDatabase } from '../databases/database.types';
import { holdDatabase, readDatabase } from '../databases/database-record';
import {
  countOnDemand,
  deleteRecord,
  findBackup,
  findCreation,
  insertBackup,
  listOrderTimes,
  listBackups as listRows,
  lockBackup,
} from './backup.store';
import type { DatabaseBackup } from './backup.types';
import { deleteBackupWorkflow } from './delete-backup.workflow';
import { takeBackupWorkflow } from './take-backup.workflow';

export const listBackups = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { pager, database } = context;
      const { caller, params, query, now } = request;
      const binding = {
        list: listDatabaseBackupsEndpoint.id,
        keyId: caller.keyId,
        filter: listFilter(caller, query, params.databaseId),
      };
      const page = pager.read(query, binding, now);
      const { id } = await readDatabase(context, request);
      const rows = await listRows(database.pool, id, { after: page.after, take: page.limit + 1 }, query);
      const give = { positionOf: (backup: { id: string }) => backup.id, view: viewBackup };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, give) };
    },
  }) satisfies ReadHandlers<typeof listDatabaseBackupsEndpoint>;

export const getBackup = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { id } = await readDatabase(context, request);
      const backup = await findBackup(context.database.pool, id, request.params.backupId);
      if (backup === null) throw problem('database_backup_not_found');
      return { status: 200, body: viewBackup(backup) };
    },
  }) satisfies ReadHandlers<typeof getDatabaseBackup>;

const viewBackup = ({
  id,
  kind,
  status,
  engineVersion: engine_version,
  archive,
  createdAt,
  completedAt,
}: DatabaseBackup): View => ({
  id,
  kind,
  status,
  engine_version,
  size_bytes: archive?.sizeBytes ?? null,
  created_at: createdAt.toISOString(),
  completed_at: completedAt?.toISOString() ?? null,
});

const dayMs = 24 * 3_600_000;

/**
 * The reason why no backup of the database may be taken on demand now; null if it may. The number of such backups is
 * limited, as is the number within 24 hours, because backups of databases do not expire and those of all customers are
 * on one disk. Failed backups do not count. The caller must hold the database's lock.
 */
async function refuseByAllowance(tx: Tx, databaseId: string, now: Date): Promise<Refusal | null> {
  const used = await countOnDemand(tx, databaseId);
  if (used >= onDemandKeptMax) return { code: 'quota_exceeded', extra: { limit: onDemandKeptMax, used } };
  const since = new Date(now.getTime() - dayMs);
  const counted = await listOrderTimes(tx, databaseId, since, onDemandLimit);
  // The oldest of the counted backups. The next one is allowed when it is a day old.
  const opens = counted[onDemandLimit - 1];
  if (opens === undefined) return null;
  const retryAfterSeconds = Math.max(1, Math.ceil((opens.getTime() - since.getTime()) / 1_000));
  return { code: 'on_demand_limit_reached', retryAfterSeconds };
}

export const takeBackup = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const managed = await holdDatabase(tx, request);
      await assertFree(context.database.sql(tx), databaseResourceKey(managed.id));
      assertAllowed(refuseUnavailable(managed) ?? (await refuseByAllowance(tx, managed.id, request.now)));
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
  }) satisfies ExecuteHandlers<typeof takeDatabaseBackupEndpoint, Tx, undefined>;

/**
 * Deletes the record of a backup at once, so that no request can choose the backup any more, and removes its archive by
 * a workflow. The workflow locks the database, so no other workflow on the database reads the archive meanwhile. A
 * workflow that creates another database from the backup does not lock this database, so it is searched for.
 */
export const deleteBackup = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { backupId } = request.params;
      const managed = await holdDatabase(tx, request);
      const backup = await findBackup(tx, managed.id, backupId);
      if (backup === null) throw problem('database_backup_not_found');
      const sql = context.database.sql(tx);
      await assertFree(sql, databaseResourceKey(managed.id));
      await lockBackup(tx, backup.id);
      assertAllowed(refusalByWorkflow(await findCreation(sql, managed, backup.id)));
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onDatabase(managed.id),
        definition: deleteBackupWorkflow,
        input: { backupId: backup.id },
        action: 'database_backup.delete',
      });
      await deleteRecord(tx, managed.id, backup.id);
      const body = { ...viewBackup(backup), workflow_id: workflowId };
      return { status: 202, headers: followHeaders(databasePath(managed.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof deleteDatabaseBackupEndpoint, Tx, undefined>;
