import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import {
  anyOf,
  createdFilter,
  idSchema,
  pageOf,
  pageQuerySchema,
  timestampSchema,
  uuidSchema,
} from '../platform/values';
import { acceptedWork } from '../platform/workflows';
import { databaseId, managedDatabaseSchema } from './databases';

/**
 * The most on-demand backups that may be taken of a managed database in any 24 hours. Failed backups do not count.
 * Databases have no scheduled backups, so the limit leaves room for a customer who takes a backup every hour.
 */
export const onDemandLimit = 30;
/** The most on-demand backups that a managed database may have at a time. Failed backups do not count. */
export const onDemandKeptMax = 200;

/**
 * A backup of kind `upgrade` is taken before or after an upgrade. A `pre_restore` holds the content that a restore has
 * replaced.
 */
export const databaseBackupKindSchema = z.enum(['on_demand', 'upgrade', 'pre_restore']);
const databaseBackupStatusSchema = z.enum(['queued', 'running', 'completed', 'failed']);
export type DatabaseBackupKind = z.infer<typeof databaseBackupKindSchema>;

export const databaseBackupSchema = z
  .strictObject({
    id: uuidSchema.describe('The backup.'),
    kind: databaseBackupKindSchema.describe(
      'upgrade was taken before or after an upgrade; pre_restore is what a restore has replaced.',
    ),
    status: databaseBackupStatusSchema.describe('Only a completed one can be restored.'),
    engine_version: z.string().describe('Major of the instance that it was taken from.'),
    size_bytes: z.int().min(0).nullable().describe('Bytes of the archive, compressed; null until it is completed.'),
    created_at: timestampSchema.describe('When it was asked for.'),
    completed_at: timestampSchema.nullable().describe('When it ended; null before.'),
  })
  .meta({ id: 'DatabaseBackup' });
export type DatabaseBackup = z.infer<typeof databaseBackupSchema>;

export const acceptedDatabaseBackupSchema = databaseBackupSchema
  .extend(acceptedWork)
  .meta({ id: 'AcceptedDatabaseBackup' });

const path = '/v1/databases/{databaseId}/backups';
const tags = ['Databases'] as const;

const backupListQuery = pageQuerySchema.extend({
  kind: anyOf(databaseBackupKindSchema, 'backups of these kinds'),
  status: anyOf(databaseBackupStatusSchema, 'backups of these statuses'),
  ...createdFilter,
});
export type DatabaseBackupFilter = Omit<z.output<typeof backupListQuery>, 'cursor' | 'limit'>;

export const listDatabaseBackups = endpoint({
  id: 'listDatabaseBackups',
  service: 'databases',
  method: 'GET',
  path,
  summary: "The database's backups, newest first",
  permissions: ['databases.view'],
  params: { databaseId },
  query: backupListQuery,
  response: { status: 200, schema: pageOf(databaseBackupSchema) },
  problems: [],
  tags,
});

export const getDatabaseBackup = endpoint({
  id: 'getDatabaseBackup',
  service: 'databases',
  method: 'GET',
  path: `${path}/{backupId}`,
  summary: 'One backup of the database',
  permissions: ['databases.view'],
  params: { databaseId, backupId: { schema: idSchema.describe('The backup.'), notFound: 'database_backup_not_found' } },
  response: { status: 200, schema: databaseBackupSchema },
  problems: [],
  tags,
});

export const takeDatabaseBackup = endpoint({
  id: 'takeDatabaseBackup',
  service: 'databases',
  method: 'POST',
  path,
  summary: 'Take a backup now; reads and writes go on. A database has 30 in any 24 hours, and 200 at a time',
  permissions: ['databases.manage'],
  params: { databaseId },
  body: z.strictObject({}),
  example: {},
  response: { status: 202, schema: acceptedDatabaseBackupSchema },
  problems: [
    'operation_in_progress',
    'needs_attention',
    'database_not_available',
    'on_demand_limit_reached',
    'quota_exceeded',
  ],
  tags,
});

export const deleteDatabaseBackup = endpoint({
  id: 'deleteDatabaseBackup',
  service: 'databases',
  method: 'DELETE',
  path: `${path}/{backupId}`,
  summary: 'Delete a backup for good; the database stays as it is',
  about:
    'The answer has the backup as it was. From then on it is not listed and cannot be restored; ' +
    'the workflow removes its archive from the storage.',
  permissions: ['databases.view', 'databases.manage'],
  params: { databaseId, backupId: { schema: idSchema.describe('The backup.'), notFound: 'database_backup_not_found' } },
  response: { status: 202, schema: acceptedDatabaseBackupSchema },
  problems: ['operation_in_progress', 'needs_attention'],
  tags,
});

const backupId = { schema: idSchema.describe('The backup.'), notNamed: 'backup_not_found' } as const;

/**
 * Backups of a database do not expire. So this restore has no problem `backup_expired`, unlike the restore of a site.
 */
export const restoreDatabaseBackup = endpoint({
  id: 'restoreDatabaseBackup',
  service: 'databases',
  method: 'POST',
  path: `${path}/{backupId}/restore`,
  summary:
    'Replace what the database holds by the backup, behind the same address; ' +
    'what is replaced becomes a backup of kind pre_restore',
  about:
    'Sessions end at the switch, and clients connect again at the same host and port. ' +
    'Roles, their passwords and memberships stay as they are ' +
    'now. What is replaced can be restored in turn.',
  permissions: ['databases.manage'],
  params: { databaseId, backupId },
  body: z.strictObject({}),
  example: {},
  response: { status: 202, schema: managedDatabaseSchema },
  problems: ['operation_in_progress', 'needs_attention', 'backup_not_completed', 'database_not_available'],
  tags,
});

export const preflightDatabaseBackupRestore = endpoint({
  id: 'preflightDatabaseBackupRestore',
  service: 'databases',
  method: 'POST',
  path: `${path}/{backupId}/restore/preflight`,
  summary: 'What a restore would replace, the space it needs, and the refusal it would get; changes nothing',
  permissions: ['databases.manage'],
  params: { databaseId, backupId },
  body: z.strictObject({}),
  example: {},
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});
