import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import {
  anyOf,
  createdFilter,
  exampleId,
  idSchema,
  pageMetaSchema,
  pageOf,
  pageQuerySchema,
  timestampSchema,
  uuidSchema,
} from '../platform/values';
import { siteId } from './sites';

export const backupKindSchema = z.enum(['scheduled', 'on_demand', 'pre_restore', 'drill']);
export type BackupKind = z.infer<typeof backupKindSchema>;
export const backupStatusSchema = z.enum(['queued', 'running', 'completed', 'failed', 'expired']);
export type BackupStatus = z.infer<typeof backupStatusSchema>;

/** The most on-demand backups that may be taken of a site in any 24 hours. Failed backups do not count. */
export const onDemandLimit = 5;
/** The days for which a backup cannot be deleted (interface.md 8.3). */
export const immutableDays = 30;

/**
 * A path that a backup left out, holds only in part, or read while it changed. `reason` is a text for people.
 */
export const skippedPathSchema = z
  .strictObject({
    path: z.string().describe("Path below the site's folder; bytes that are no UTF-8 are shown as U+FFFD."),
    reason: z
      .string()
      .describe(
        'Why, for people. `changed while it was read`, and a part that was left out, ' +
          'mean that the path itself is in the backup.',
      ),
  })
  .meta({ id: 'SkippedPath' });

export const siteBackupSchema = z
  .strictObject({
    id: uuidSchema.describe('The backup.'),
    site_id: uuidSchema.describe('The site.'),
    kind: backupKindSchema.describe("pre_restore is what a restore has replaced; drill is the platform's own test."),
    status: backupStatusSchema.describe('Only a completed one can be restored.'),
    restorable: z.boolean().describe('Whether it can be restored: it is completed and has not expired.'),
    includes: z
      .strictObject({
        files: z.boolean().describe("False when the site's front page, such as index.php, is not among them."),
        database: z.boolean().describe("Whether it holds the site's database."),
      })
      .meta({ id: 'SiteBackupContents' })
      .describe('What it holds.'),
    skipped: z
      .strictObject({
        count: z.int().min(0).describe('How many, also beyond those that are listed.'),
        sample: z
          .array(skippedPathSchema)
          .max(10)
          .describe('Up to ten of them, a front page first. The list has an endpoint of its own.'),
      })
      .meta({ id: 'SkippedPaths' })
      .describe('Paths that are not in it, or not as they were at one moment.'),
    size_bytes: z.int().min(0).nullable().describe('Bytes of the archive, compressed; null until it is completed.'),
    checksum_sha256: z
      .string()
      .nullable()
      .describe(
        "SHA-256 of the archive's manifest in hexadecimal, which in turn covers every byte of the archive; " +
          'null until it is completed.',
      ),
    location: z
      .enum(['object_storage', 'worker_host'])
      .describe('Where it is kept. worker_host is the machine that took it.'),
    created_at: timestampSchema.describe('When it was asked for.'),
    completed_at: timestampSchema.nullable().describe('When it ended; null before.'),
    expires_at: timestampSchema.nullable().describe('When it is deleted; null for never.'),
    locked_until: timestampSchema
      .nullable()
      .describe('Until when nobody can delete or change it; null where the storage locks nothing.'),
    error_code: z.string().describe('Why it failed, as a code of /problems; empty otherwise.'),
  })
  .meta({ id: 'SiteBackup' });
export type SiteBackup = z.infer<typeof siteBackupSchema>;

export const unsupportedReasonSchema = z.enum(['', 'platform_no_backup', 'no_database_access', 'external_site']);
export const immutabilityReasonSchema = z.enum([
  '',
  'never_checked',
  'no_rule',
  'delete_succeeded',
  'credential_missing',
  'canary_write_failed',
  'stale',
  'refusal_unclassified',
  'positive_control_failed',
  'storage_unreachable',
  'retention_too_short',
]);
export const restoreDrillReasonSchema = z.enum([
  '',
  'never_drilled',
  'no_drill_site',
  'no_recent_backup',
  'canary_unavailable',
  'restore_failed',
  'stale',
  'content_mismatch',
  'probe_failed',
  'timed_out',
]);

/** The backups of a site, in the form of interface.md 2.2. */
export const siteBackupSurfaceSchema = z
  .strictObject({
    site_id: uuidSchema.describe('The site.'),
    backups: z.array(siteBackupSchema).describe('A page of them, newest first.'),
    page: pageMetaSchema.describe('Where the list of backups goes on.'),
    can_backup: z.boolean().describe('Whether a backup would be accepted now.'),
    in_progress: z.boolean().describe('Whether a backup or a restore is running. Poll while it is true.'),
    on_demand_backups: z.literal(true).describe('Always true: every plan includes them.'),
    unsupported_reason: unsupportedReasonSchema.describe(
      "Why the site's platform cannot be backed up at all; empty when it can.",
    ),
    on_demand_limit: z.int().describe('On-demand backups that a site may take in any 24 hours.'),
    on_demand_used: z.int().describe('On-demand backups of the last 24 hours. Failed ones do not count.'),
    on_demand_remaining: z.int().describe('How many may be taken now.'),
    on_demand_next_at: timestampSchema
      .nullable()
      .describe('When the next one may be taken; null while on_demand_remaining is above 0.'),
    daily_backups: z.boolean().describe('Whether the plan takes one every night.'),
    retention_days: z.int().describe('Days for which a backup is kept.'),
    offsite_enabled: z
      .boolean()
      .describe('Whether backups are kept in object storage. Otherwise each stays on the machine that took it.'),
    immutable: z
      .boolean()
      .describe(
        'Whether it was proven lately, by a delete that was refused, that nobody can delete or change a backup.',
      ),
    immutable_days: z.literal(immutableDays).describe('Days for which nobody can delete or change a backup.'),
    immutability_verified_at: timestampSchema
      .nullable()
      .describe('When a delete was last tried and refused; null if never.'),
    immutability_reason: immutabilityReasonSchema.describe('Why immutability is not proven; empty when it is.'),
    restore_drill_passed: z
      .boolean()
      .describe('Whether the weekly drill, which restores a stored backup onto a site of the platform, passed lately.'),
    restore_drill_at: timestampSchema
      .nullable()
      .describe('When the last drill ended, whatever its outcome; null if never.'),
    restore_drill_reason: restoreDrillReasonSchema.describe('Why restores are not proven; empty when they are.'),
  })
  .meta({ id: 'SiteBackupSurface' });
export type SiteBackupSurface = z.infer<typeof siteBackupSurfaceSchema>;

/**
 * Whether a restore brings back everything or only the files. The specification does not have this parameter and always
 * restores everything.
 */
export const restoreContentsSchema = z.enum(['all', 'files']);
export type RestoreContents = z.infer<typeof restoreContentsSchema>;

export const restoreQuerySchema = z.strictObject({
  contents: restoreContentsSchema.optional().meta({
    description:
      'files: the files alone come back, and the database stays as it is; ' +
      'for where that of the backup or copy cannot be loaded. Else all.',
  }),
});

const restoreBody = z.strictObject({ backup_id: idSchema.describe('A backup of this site, of status completed.') });
const restoreProblems = [
  'operation_in_progress',
  'needs_attention',
  'backup_not_found',
  'backup_not_completed',
  'backup_expired',
  'platform_unsupported',
  'site_not_ready',
] as const;
const tags = ['Backups'] as const;

const backupListQuery = pageQuerySchema.extend({
  kind: anyOf(backupKindSchema, 'backups of these kinds'),
  status: anyOf(backupStatusSchema, 'backups of these statuses'),
  ...createdFilter,
});
export type BackupFilter = Omit<z.output<typeof backupListQuery>, 'cursor' | 'limit'>;

export const listSiteBackups = endpoint({
  id: 'listSiteBackups',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/backups',
  summary: 'The backup surface of a site; poll it while in_progress is true',
  permissions: ['sites.view'],
  params: { siteId },
  query: backupListQuery,
  response: { status: 200, schema: siteBackupSurfaceSchema },
  problems: [],
  tags,
});

const siteBackupId = { schema: idSchema.describe('The backup.'), notFound: 'site_backup_not_found' } as const;

export const getSiteBackup = endpoint({
  id: 'getSiteBackup',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/backups/{backupId}',
  summary: 'One backup of the site',
  permissions: ['sites.view'],
  params: { siteId, backupId: siteBackupId },
  response: { status: 200, schema: siteBackupSchema },
  problems: [],
  tags,
});

export const listSiteBackupSkipped = endpoint({
  id: 'listSiteBackupSkipped',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/backups/{backupId}/skipped',
  summary:
    'The paths that a backup does not hold, or not as they were at one moment; ' +
    '10,000 are listed, skipped.count counts all',
  permissions: ['sites.view'],
  params: { siteId, backupId: siteBackupId },
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(skippedPathSchema) },
  problems: [],
  tags,
});

export const takeSiteBackup = endpoint({
  id: 'takeSiteBackup',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/backups',
  summary: 'Take a backup now; a site has five in any 24 hours',
  about:
    'The site goes on serving, and its database takes writes. ' +
    'The backup is complete when all of it was read back and verified.',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: z.strictObject({}),
  example: {},
  response: { status: 202, schema: siteBackupSurfaceSchema },
  problems: [
    'operation_in_progress',
    'needs_attention',
    'platform_unsupported',
    'site_not_ready',
    'on_demand_limit_reached',
  ],
  tags,
});

/** Endpoint 3 of interface.md. */
export const restoreSiteBackup = endpoint({
  id: 'restoreSiteBackup',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/backups/restore',
  summary: "Overwrite the site's live files and database with the named backup",
  about:
    'All files and the whole database are overwritten. ' +
    'What they were becomes a backup of kind `pre_restore` first, which can be restored in ' +
    'turn. The site serves its old content until the new one is in place; ' +
    'requests and sessions wait at the moment of the switch. When it then ' +
    'answers worse than when the backup was taken, the old content comes back. ' +
    'The preflight tells all of it beforehand. With `contents=files` ' +
    'the files alone are overwritten, and the database stays as it is.',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  query: restoreQuerySchema,
  body: restoreBody,
  example: { backup_id: exampleId },
  response: { status: 202, schema: siteBackupSurfaceSchema },
  hasClosedStatuses: true,
  problems: restoreProblems,
  tags,
});

export const preflightSiteBackupRestore = endpoint({
  id: 'preflightSiteBackupRestore',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/backups/restore/preflight',
  summary: 'What a restore would overwrite, and the refusal it would give; changes nothing',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  query: restoreQuerySchema,
  body: restoreBody,
  example: { backup_id: exampleId },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});
