import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { idSchema, pageOf, pageQuerySchema, text, timestampSchema } from '../platform/values';

export const databaseEngineSchema = z.enum(['postgres', 'mysql']);
export type DatabaseEngine = z.infer<typeof databaseEngineSchema>;
export const databaseStatusSchema = z.enum(['provisioning', 'available', 'failed', 'suspended', 'deleting', 'deleted']);
export type DatabaseStatus = z.infer<typeof databaseStatusSchema>;

export const managedDatabaseBillingSchema = z
  .strictObject({
    subscription_id: z.string(),
    status: z.enum(['active', 'past_due', 'cancelled']),
    currency: z.string(),
    amount_minor: z.int().min(0),
    interval: z.literal('month'),
    current_period_end: timestampSchema,
    cancel_at_period_end: z.boolean(),
  })
  .meta({ id: 'ManagedDatabaseBilling' });

/** interface.md 2.8 */
export const managedDatabaseSchema = z
  .strictObject({
    id: z.string(),
    label: z.string(),
    engine: databaseEngineSchema,
    engine_version: z.string(),
    engine_label: z.string(),
    size: z.string(),
    status: databaseStatusSchema,
    status_detail: z.string(),
    /** Empty until the instance is available; the same for ever then. TLS is required. */
    host: z.string(),
    port: z.int(),
    database_name: z.string(),
    username: z.string(),
    high_availability: z.boolean(),
    vcpu: z.int(),
    ram_gb: z.int(),
    storage_gb: z.int(),
    tls_required: z.literal(true),
    created_at: timestampSchema,
    last_backup_at: timestampSchema.nullable(),
    order_line_id: z.string().nullable(),
    billing: managedDatabaseBillingSchema.nullable(),
    restore_verified_at: timestampSchema.nullable(),
  })
  .meta({ id: 'ManagedDatabase' });
export type ManagedDatabase = z.infer<typeof managedDatabaseSchema>;

/** With its password, which is shown by the creating call alone. */
export const createdDatabaseSchema = managedDatabaseSchema.extend({ password: z.string() }).meta({ id: 'CreatedDatabase' });
export type CreatedDatabase = z.infer<typeof createdDatabaseSchema>;

const offeredVersionSchema = z.strictObject({
  version: z.string(),
  label: z.string(),
  /** Majors that a database of this one can be moved to in one step. */
  upgradable_to: z.array(z.string()),
  /** The day from which nobody mends it any more. */
  end_of_life: z.iso.date(),
});

export const databaseSizeSchema = z.strictObject({ code: z.string(), vcpu: z.int(), ram_gb: z.int(), storage_gb: z.int() });
export type DatabaseSize = z.infer<typeof databaseSizeSchema>;

export const databaseCatalogueSchema = z
  .strictObject({
    engines: z.array(z.strictObject({ engine: databaseEngineSchema, versions: z.array(offeredVersionSchema) })),
    sizes: z.array(databaseSizeSchema),
  })
  .meta({ id: 'DatabaseCatalogue' });
export type DatabaseCatalogue = z.infer<typeof databaseCatalogueSchema>;

export const databaseId = { schema: idSchema, notFound: 'database_not_found' } as const;
const tags = ['Databases'] as const;

export const getDatabaseCatalogue = endpoint({
  id: 'getDatabaseCatalogue',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases/catalogue',
  summary: 'Engines, their majors and sizes that are offered here',
  permissions: [],
  response: { status: 200, schema: databaseCatalogueSchema },
  problems: [],
  tags,
});

export const listDatabases = endpoint({
  id: 'listDatabases',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases',
  summary: "The organisation's databases, newest first",
  permissions: ['databases.view'],
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(managedDatabaseSchema) },
  problems: [],
  tags,
});

export const createDatabase = endpoint({
  id: 'createDatabase',
  service: 'databases',
  method: 'POST',
  path: '/v1/databases',
  summary: 'Create a database; it is provisioning until its instance answers. The password is shown here alone',
  permissions: ['databases.manage'],
  body: z.strictObject({
    label: text(200),
    engine: databaseEngineSchema,
    engine_version: z.string().max(32),
    size: z.string().max(32),
    high_availability: z.boolean().default(false),
    from: z.strictObject({ backup_id: idSchema }).optional().meta({
      description: "Begins with what this backup of a database of the organisation's holds; engine_version is the backup's or a newer one",
    }),
  }),
  example: { label: 'Shop', engine: 'postgres', engine_version: '16', size: 'small' },
  response: { status: 202, schema: createdDatabaseSchema },
  problems: [
    'engine_not_offered',
    'version_not_offered',
    'size_not_offered',
    'high_availability_unavailable',
    'backup_not_found',
    'backup_not_completed',
    'backup_version_newer',
    'quota_exceeded',
  ],
  tags,
});

export const getDatabase = endpoint({
  id: 'getDatabase',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases/{databaseId}',
  summary: 'One database',
  permissions: ['databases.view'],
  params: { databaseId },
  response: { status: 200, schema: managedDatabaseSchema },
  problems: [],
  tags,
});

export const deleteDatabase = endpoint({
  id: 'deleteDatabase',
  service: 'databases',
  method: 'DELETE',
  path: '/v1/databases/{databaseId}',
  summary: 'Delete a database and its backups, for good',
  permissions: ['databases.view', 'databases.manage'],
  params: { databaseId },
  response: { status: 202, schema: managedDatabaseSchema },
  problems: ['operation_in_progress', 'needs_attention'],
  tags,
});
