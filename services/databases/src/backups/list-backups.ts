import {
  listDatabaseBackups as endpoint,
  type getDatabaseBackup,
  type DatabaseBackup as View,
} from '@drydock/contracts/databases/database-backups';
import { problem } from '@drydock/contracts/platform/problem';
import { listFilter, type ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { readDatabase } from '../databases/find-database';
import { findBackup, listBackups as listRows } from './backup.store';
import type { DatabaseBackup } from './backup.types';

export const listBackups = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { pager, database } = context;
      const { caller, params, query, now } = request;
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: listFilter(caller, query, params.databaseId) };
      const page = pager.read(query, binding, now);
      const { id } = await readDatabase(context, request);
      const rows = await listRows(database.pool, id, { after: page.after, take: page.limit + 1 }, query);
      const give = { positionOf: (backup: { id: string }) => backup.id, view: viewBackup };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, give) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

export const getBackup = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { id } = await readDatabase(context, request);
      const backup = await findBackup(context.database.pool, id, request.params.backupId);
      if (backup === null) throw problem('database_backup_not_found');
      return { status: 200, body: viewBackup(backup) };
    },
  }) satisfies ReadHandlers<typeof getDatabaseBackup>;

export const viewBackup = ({
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
