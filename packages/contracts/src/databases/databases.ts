import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import {
  anyOf,
  createdFilter,
  idSchema,
  metadataChangeSchema,
  metadataFilter,
  metadataSchema,
  pageOf,
  pageQuerySchema,
  storageStateSchema,
  text,
  textFilter,
  timestampSchema,
} from '../platform/values';
import { workflowEndpoints } from '../platform/workflows';

export const databaseEngineSchema = z.enum(['postgres', 'mysql']);
export type DatabaseEngine = z.infer<typeof databaseEngineSchema>;
export const databaseStatusSchema = z.enum(['provisioning', 'available', 'failed', 'suspended', 'deleting', 'deleted']);
export type DatabaseStatus = z.infer<typeof databaseStatusSchema>;

export const managedDatabaseBillingSchema = z
  .strictObject({
    subscription_id: z.string().describe('The subscription that pays for it.'),
    status: z.enum(['active', 'past_due', 'cancelled']).describe('How payment stands.'),
    currency: z.string().describe('Three letters of ISO 4217.'),
    amount_minor: z.int().min(0).describe("Price of a month in the currency's smallest unit, such as cents."),
    interval: z.literal('month').describe('What amount_minor pays for.'),
    current_period_end: timestampSchema.describe('Until when it is paid.'),
    cancel_at_period_end: z.boolean().describe('Whether the subscription ends then.'),
  })
  .meta({ id: 'ManagedDatabaseBilling' });

/** The database of interface.md 2.8. */
export const managedDatabaseSchema = z
  .strictObject({
    id: z.string().describe('The database.'),
    label: z.string().describe("The customer's own name for it; never sent to the infrastructure."),
    engine: databaseEngineSchema.describe('The engine that runs it.'),
    engine_version: z.string().describe("The engine's major. The patch level cannot be chosen."),
    engine_label: z.string().describe('Engine and version as people read them.'),
    size: z.string().describe('A size code of the catalogue.'),
    status: databaseStatusSchema.describe('How the instance stands. Data can be reached while it is available.'),
    status_detail: z.string().describe('Why a failed instance failed; empty otherwise.'),
    host: z.string().describe('Empty until the instance is available; the same for ever then.'),
    port: z.int().describe('TCP port; 0 until the instance is available.'),
    database_name: z.string().describe('Name to connect to.'),
    username: z.string().describe("The owner's role."),
    high_availability: z.boolean().describe('Whether a standby takes over by itself.'),
    vcpu: z.int().describe('Virtual CPUs.'),
    ram_gb: z.int().describe('Memory in GB.'),
    storage_gb: z.int().describe('Disk in GB.'),
    tls_required: z.literal(true).describe('Always true: a connection without TLS is refused.'),
    metadata: metadataSchema.describe('Names and values of your own, up to 20; Drydock only keeps them.'),
    created_at: timestampSchema.describe('When it was ordered.'),
    last_backup_at: timestampSchema.nullable().describe('When a backup last completed; null if never.'),
    order_line_id: z
      .string()
      .nullable()
      .describe('The line of the paid order that it fulfils; null where there is none.'),
    billing: managedDatabaseBillingSchema
      .nullable()
      .describe('The subscription that pays for it; null where none does.'),
    restore_verified_at: timestampSchema
      .nullable()
      .describe(
        'When a backup of it was last restored on trial and read back over a client connection; null if never.',
      ),
  })
  .meta({ id: 'ManagedDatabase' });
export type ManagedDatabase = z.infer<typeof managedDatabaseSchema>;

/** A database with its password, which only the creating call shows. */
export const createdDatabaseSchema = managedDatabaseSchema
  .extend({ password: z.string().describe("The owner's password. Shown by this answer only.") })
  .meta({ id: 'CreatedDatabase' });
export type CreatedDatabase = z.infer<typeof createdDatabaseSchema>;

const offeredVersionSchema = z
  .strictObject({
    version: z.string().describe('The major; of two parts for MariaDB and MySQL.'),
    flavour: z
      .enum(['mariadb', 'mysql'])
      .nullable()
      .describe('Which kind of engine mysql it is; null of any other engine. An upgrade stays within its flavour.'),
    label: z.string().describe('The major as people read it.'),
    upgradable_to: z.array(z.string()).describe('Majors that a database of this one can be moved to in one step.'),
    end_of_life: z.iso.date().describe('The day from which nobody mends it any more, as YYYY-MM-DD.'),
  })
  .meta({ id: 'DatabaseVersion' });

export const databaseSizeSchema = z
  .strictObject({
    code: z.string().describe('The size, as an order names it.'),
    vcpu: z.int().describe('Virtual CPUs.'),
    ram_gb: z.int().describe('Memory in GB.'),
    storage_gb: z.int().describe('Disk in GB.'),
  })
  .meta({ id: 'DatabaseSize' });
export type DatabaseSize = z.infer<typeof databaseSizeSchema>;

export const databaseCatalogueSchema = z
  .strictObject({
    engines: z
      .array(
        z
          .strictObject({
            engine: databaseEngineSchema.describe('The engine, as an order names it.'),
            versions: z.array(offeredVersionSchema).describe('Its majors that are offered, oldest first.'),
          })
          .meta({ id: 'DatabaseEngineOffer' }),
      )
      .describe('Engines that are offered here.'),
    sizes: z.array(databaseSizeSchema).describe('Sizes that are offered, smallest first.'),
  })
  .meta({ id: 'DatabaseCatalogue' });
export type DatabaseCatalogue = z.infer<typeof databaseCatalogueSchema>;

export const databaseId = { schema: idSchema.describe('The database.'), notFound: 'database_not_found' } as const;
const tags = ['Databases'] as const;

export const getDatabaseCatalogue = endpoint({
  id: 'getDatabaseCatalogue',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases/catalogue',
  summary:
    'Engines, their majors and sizes that are offered here: ' +
    'of engine mysql those whose programs the host of databases has',
  permissions: [],
  response: { status: 200, schema: databaseCatalogueSchema },
  problems: [],
  tags,
});

const databaseListQuery = pageQuerySchema.extend({
  status: anyOf(databaseStatusSchema, 'databases of these statuses'),
  storage: anyOf(storageStateSchema, 'databases whose storage, as recorded once a minute, is in one of these states'),
  text: textFilter('its label'),
  metadata: metadataFilter,
  ...createdFilter,
});
export type DatabaseFilter = Omit<z.output<typeof databaseListQuery>, 'cursor' | 'limit'>;

export const listDatabases = endpoint({
  id: 'listDatabases',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases',
  summary: "The organisation's databases, newest first",
  permissions: ['databases.view'],
  query: databaseListQuery,
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
    label: text(200).describe("The customer's own name for it, 1 to 200 characters."),
    engine: databaseEngineSchema.describe('An engine of the catalogue.'),
    engine_version: z.string().max(32).describe('A major of the catalogue.'),
    size: z.string().max(32).describe('A size code of the catalogue.'),
    metadata: metadataChangeSchema
      .optional()
      .describe('Up to 20 names of up to 40 characters, each with a value of up to 500.'),
    high_availability: z.boolean().default(false).describe('A standby that takes over by itself.'),
    from: z
      .strictObject({ backup_id: idSchema.describe('A completed backup of a database of the organisation.') })
      .meta({ id: 'DatabaseOrigin' })
      .optional()
      .meta({
        description:
          "Begins with what this backup of a database of the organisation's holds; " +
          "engine_version is the backup's or a newer one, and size stores what the backup holds",
      }),
  }),
  example: { label: 'Shop', engine: 'postgres', engine_version: '16', size: 'small' },
  response: { status: 202, schema: createdDatabaseSchema },
  problems: [
    'engine_not_offered',
    'version_not_offered',
    'engine_differs',
    'size_not_offered',
    'high_availability_unavailable',
    'backup_not_found',
    'backup_not_completed',
    'backup_version_newer',
    'size_too_small',
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

export const databaseStorageSchema = z
  .strictObject({
    state: storageStateSchema
      .nullable()
      .describe(
        'nearly_full from nine tenths on; full takes no more until some is removed; closed, more than a fifth over, ' +
          'gets no sessions; null where it has not been counted.',
      ),
    limit_bytes: z.int().min(0).describe('The storage of its size, in bytes.'),
    data_bytes: z
      .int()
      .min(0)
      .nullable()
      .describe('What it takes of that, in bytes, with indexes and temporary files; null where it was not counted.'),
    log_bytes: z
      .int()
      .min(0)
      .nullable()
      .describe('Its log of changes in bytes, which has a limit of the same size while an upgrade copies; null else.'),
    counted_at: timestampSchema.nullable().describe('When it was counted; null where it was not.'),
  })
  .meta({ id: 'DatabaseStorage' });
export type DatabaseStorage = z.infer<typeof databaseStorageSchema>;

export const getDatabaseStorage = endpoint({
  id: 'getDatabaseStorage',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases/{databaseId}/storage',
  summary: 'How full a database is, as last counted',
  permissions: ['databases.view'],
  params: { databaseId },
  response: { status: 200, schema: databaseStorageSchema },
  problems: [],
  tags,
});

export const updateDatabase = endpoint({
  id: 'updateDatabase',
  service: 'databases',
  method: 'PATCH',
  path: '/v1/databases/{databaseId}',
  summary: 'Change the label of a database, or what you keep with it; also while work is done to it',
  permissions: ['databases.view', 'databases.manage'],
  params: { databaseId },
  body: z
    .strictObject({
      label: text(200).describe("The customer's own name for it, 1 to 200 characters."),
      metadata: metadataChangeSchema.describe(
        'Values to set; null or an empty one removes its name. What is not named stays. Up to 20 in all.',
      ),
    })
    .partial(),
  example: { label: 'Shop', metadata: { contract: 'C-1041' } },
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

export const preflightDatabaseDeletion = endpoint({
  id: 'preflightDatabaseDeletion',
  service: 'databases',
  method: 'POST',
  path: '/v1/databases/{databaseId}/deletion/preflight',
  summary: 'What a deletion would remove for good, and the refusal it would give; changes nothing',
  permissions: ['databases.view', 'databases.manage'],
  params: { databaseId },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

export const databaseWorkflows = workflowEndpoints({
  noun: 'Database',
  service: 'databases',
  path: '/v1/databases/{databaseId}',
  params: { databaseId },
  view: 'databases.view',
  listSummary: 'What was and is being done to the database, newest first',
  abandonSummary:
    'Staff: give up a workflow that needs attention and unlock the database; ' +
    'error.detail says what state it is left in',
});
