import { z } from 'zod';
import { databaseId } from './databases';
import { endpoint } from './endpoint';
import { pageOf, pageQuerySchema, timestampSchema, uuidSchema } from './values';

export const databaseBackupSchema = z
  .strictObject({
    id: uuidSchema,
    status: z.enum(['queued', 'running', 'completed', 'failed']),
    /** Of the instance that it was taken from. */
    engine_version: z.string(),
    size_bytes: z.int().min(0).nullable(),
    created_at: timestampSchema,
    completed_at: timestampSchema.nullable(),
  })
  .meta({ id: 'DatabaseBackup' });
export type DatabaseBackup = z.infer<typeof databaseBackupSchema>;

const path = '/v1/databases/{databaseId}/backups';
const tags = ['Databases'] as const;

export const listDatabaseBackups = endpoint({
  id: 'listDatabaseBackups',
  service: 'databases',
  method: 'GET',
  path,
  summary: "The database's backups, newest first",
  permissions: ['databases.view'],
  params: { databaseId },
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(databaseBackupSchema) },
  problems: [],
  tags,
});

export const takeDatabaseBackup = endpoint({
  id: 'takeDatabaseBackup',
  service: 'databases',
  method: 'POST',
  path,
  summary: 'Take a backup now; reads and writes go on',
  permissions: ['databases.manage'],
  params: { databaseId },
  body: z.strictObject({}),
  response: { status: 202, schema: databaseBackupSchema },
  problems: ['operation_in_progress', 'needs_attention', 'database_not_available'],
  tags,
});
