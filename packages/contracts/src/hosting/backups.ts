import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import { exampleId, idSchema, pageMetaSchema, pageOf, pageQuerySchema, timestampSchema, uuidSchema } from '../platform/values';
import { siteId } from './sites';

export const backupKindSchema = z.enum(['scheduled', 'on_demand', 'pre_restore', 'drill']);
export type BackupKind = z.infer<typeof backupKindSchema>;
export const backupStatusSchema = z.enum(['queued', 'running', 'completed', 'failed', 'expired']);
export type BackupStatus = z.infer<typeof backupStatusSchema>;

/** On-demand backups that a site may take in any 24 hours; failed ones do not count. */
export const onDemandLimit = 5;
/** interface.md 8.3 */
export const immutableDays = 30;

/** `reason` is for people. `changed while it was read`, and what names a part that was left out, mean that the path itself is in the backup. */
export const skippedPathSchema = z.strictObject({ path: z.string(), reason: z.string() }).meta({ id: 'SkippedPath' });

export const siteBackupSchema = z
  .strictObject({
    id: uuidSchema,
    site_id: uuidSchema,
    kind: backupKindSchema,
    status: backupStatusSchema,
    restorable: z.boolean(),
    /** `files` is false when the site's front page, such as index.php, is not among them. */
    includes: z.strictObject({ files: z.boolean(), database: z.boolean() }),
    /** Paths that are not in it, or not as they were at one moment: how many, and up to ten of them, a front page first. */
    skipped: z.strictObject({ count: z.int().min(0), sample: z.array(skippedPathSchema).max(10) }),
    size_bytes: z.int().min(0).nullable(),
    /** The SHA-256 of the archive's manifest, which in turn covers every byte of the archive. */
    checksum_sha256: z.string().nullable(),
    location: z.enum(['object_storage', 'worker_host']),
    created_at: timestampSchema,
    completed_at: timestampSchema.nullable(),
    expires_at: timestampSchema.nullable(),
    locked_until: timestampSchema.nullable(),
    error_code: z.string(),
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

/** interface.md 2.2 */
export const siteBackupSurfaceSchema = z
  .strictObject({
    site_id: uuidSchema,
    /** A page of them, newest first. */
    backups: z.array(siteBackupSchema),
    page: pageMetaSchema,
    can_backup: z.boolean(),
    in_progress: z.boolean(),
    on_demand_backups: z.literal(true),
    unsupported_reason: unsupportedReasonSchema,
    on_demand_limit: z.int(),
    on_demand_used: z.int(),
    on_demand_remaining: z.int(),
    on_demand_next_at: timestampSchema.nullable(),
    daily_backups: z.boolean(),
    retention_days: z.int(),
    offsite_enabled: z.boolean(),
    immutable: z.boolean(),
    immutable_days: z.literal(immutableDays),
    immutability_verified_at: timestampSchema.nullable(),
    immutability_reason: immutabilityReasonSchema,
    restore_drill_passed: z.boolean(),
    restore_drill_at: timestampSchema.nullable(),
    restore_drill_reason: restoreDrillReasonSchema,
  })
  .meta({ id: 'SiteBackupSurface' });
export type SiteBackupSurface = z.infer<typeof siteBackupSurfaceSchema>;

const restoreBody = z.strictObject({ backup_id: idSchema });
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

export const listSiteBackups = endpoint({
  id: 'listSiteBackups',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/backups',
  summary: 'The backup surface of a site; poll it while in_progress is true',
  permissions: ['sites.view'],
  params: { siteId },
  query: pageQuerySchema,
  response: { status: 200, schema: siteBackupSurfaceSchema },
  problems: [],
  tags,
});

export const listSiteBackupSkipped = endpoint({
  id: 'listSiteBackupSkipped',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/backups/{backupId}/skipped',
  summary: 'The paths that a backup does not hold, or not as they were at one moment; up to 10,000 are listed',
  permissions: ['sites.view'],
  params: { siteId, backupId: { schema: idSchema, notFound: 'site_backup_not_found' } },
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
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: z.strictObject({}),
  example: {},
  response: { status: 202, schema: siteBackupSurfaceSchema },
  problems: ['operation_in_progress', 'needs_attention', 'platform_unsupported', 'site_not_ready', 'on_demand_limit_reached'],
  tags,
});

/** Endpoint 3: destructive. */
export const restoreSiteBackup = endpoint({
  id: 'restoreSiteBackup',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/backups/restore',
  summary: "Overwrite the site's live files and database with the named backup",
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: restoreBody,
  example: { backup_id: exampleId },
  response: { status: 202, schema: siteBackupSurfaceSchema },
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
  body: restoreBody,
  example: { backup_id: exampleId },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});
