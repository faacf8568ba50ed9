import {
  type BackupFilter,
  type getSiteBackup,
  immutableDays,
  listSiteBackupSkipped,
  listSiteBackups,
  type SiteBackup,
  type SiteBackupSurface,
} from '@drydock/contracts/hosting/backups';
import { problem } from '@drydock/contracts/platform/problem';
import type { PageMeta } from '@drydock/contracts/platform/values';
import type { ReadHandlers } from '@drydock/service/http';
import { isInProgress, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import { findUnfinished } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Reader } from '../context/database.store';
import { retentionDaysOf, unsupportedReasonOf } from '../sites/site.rules';
import { type Site, siteResourceKey } from '../sites/site.types';
import { type ListPage, readListPage, readSite } from '../sites/site-record';
import { allowanceOf, allowanceWindowStart, type Backup, noAllowance, refuseBackup, statusAt } from './backup.rules';
import { findBackup, listOnDemand, listBackups as listRows, listSkipped, type SkippedRow } from './backup.store';
import { type BackupProofs, immutabilityOf, restoreDrillOf } from './proof.rules';

/**
 * The id that binds a cursor to the list of backups. Every endpoint that answers a backup surface uses this id, so that
 * the list accepts the cursors of all these answers.
 */
export const backupList = listSiteBackups.id;

/** Rows that a request has read or written itself, in the transaction that accepted its work. */
interface KnownOfSurface {
  /** The backups as {@link readSurfaceRows} returns them. */
  rows: readonly Backup[];
  unfinished: UnfinishedWorkflow;
}

export const readSurfaceRows = (
  tx: Reader,
  site: Site,
  { asked }: ListPage,
  filter: BackupFilter = {},
): Promise<Backup[]> => listRows(tx, site.id, { after: asked.after, take: asked.limit + 1 }, filter);

/**
 * Reads the backup surface within `tx`, so that the answer of a request shows the work that the request has just begun.
 * The rows in `known` are not read again. `filter` narrows only the list of backups.
 */
export async function readSurface(
  context: Pick<HandlerContext, 'database' | 'proofs'>,
  tx: Reader,
  site: Site,
  listPage: ListPage,
  { filter = {}, known }: { filter?: BackupFilter; known?: KnownOfSurface } = {},
): Promise<SiteBackupSurface> {
  const { asked, pageOf, now } = listPage;
  const [unfinished, rows, proofs] = await Promise.all([
    known?.unfinished ?? findUnfinished(context.database.sql(tx), siteResourceKey(site.id)),
    known?.rows ?? readSurfaceRows(tx, site, listPage, filter),
    context.proofs.read(site.mode),
  ]);
  // A first page without a filter and without a next page holds every backup of the site. Then the allowance can be
  // counted without another query.
  const isWhole = Object.keys(filter).length === 0 && asked.after === null && rows.length <= asked.limit;
  const onDemand = isWhole ? rows : await listOnDemand(tx, site.id, allowanceWindowStart(now));
  const { data: backups, page } = pageOf(rows, (backup) => viewBackup(backup, now));
  return viewSurface({ site, backups, page, onDemand, unfinished, proofs }, now);
}

interface SurfaceFacts {
  site: Site;
  /** One page of the site's backups, newest first. */
  backups: SiteBackup[];
  page: PageMeta;
  /** Every backup that counts against the allowance, and perhaps further ones, which `allowanceOf` leaves out. */
  onDemand: readonly Backup[];
  unfinished: UnfinishedWorkflow | null;
  proofs: BackupProofs;
}

/**
 * The backup surface of interface.md 2.2. The surface claims immutability and a passed drill only if a recent check has
 * proved them.
 */
function viewSurface(facts: SurfaceFacts, now: Date): SiteBackupSurface {
  const { site, backups, page, onDemand, unfinished, proofs } = facts;
  const unsupportedReason = unsupportedReasonOf(site.platform);
  const allowance = unsupportedReason === '' ? allowanceOf(onDemand, now) : noAllowance;
  const [immutability, drill] = [immutabilityOf(proofs, now), restoreDrillOf(proofs, site.platform, now)];
  return {
    site_id: site.id,
    backups,
    page,
    can_backup: refuseBackup({ site, unfinished }, allowance, now) === null,
    in_progress: isInProgress(unfinished),
    on_demand_backups: true,
    unsupported_reason: unsupportedReason,
    on_demand_limit: allowance.limit,
    on_demand_used: allowance.used,
    on_demand_remaining: allowance.remaining,
    on_demand_next_at: allowance.nextAt?.toISOString() ?? null,
    daily_backups: site.dailyBackups,
    retention_days: retentionDaysOf(site),
    offsite_enabled: proofs.isOffsiteEnabled,
    immutable: immutability.isImmutable,
    immutable_days: immutableDays,
    immutability_verified_at: immutability.verifiedAt?.toISOString() ?? null,
    immutability_reason: immutability.reason,
    restore_drill_passed: drill.hasPassed,
    restore_drill_at: drill.finishedAt?.toISOString() ?? null,
    restore_drill_reason: drill.reason,
  };
}

const timestamp = (at: Date | null): string | null => at?.toISOString() ?? null;

/** The SiteBackup of decisions.md 3. */
function viewBackup(backup: Backup, now: Date): SiteBackup {
  const status = statusAt(backup, now);
  return {
    id: backup.id,
    site_id: backup.siteId,
    kind: backup.kind,
    status,
    restorable: status === 'completed',
    includes: { files: backup.includesFiles, database: backup.includesDatabase },
    skipped: backup.skipped,
    size_bytes: backup.archive?.sizeBytes ?? null,
    checksum_sha256: backup.archive?.checksumSha256 ?? null,
    location: backup.location,
    created_at: backup.createdAt.toISOString(),
    completed_at: timestamp(backup.completedAt),
    expires_at: timestamp(backup.expiresAt),
    locked_until: timestamp(backup.lockedUntil),
    error_code: backup.errorCode,
  };
}

export const listBackupSkipped = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, query, now, params } = request;
      const { pager, database } = context;
      const binding = {
        list: listSiteBackupSkipped.id,
        keyId: caller.keyId,
        filter: `${caller.orgId}:${caller.mode}:${params.backupId}`,
      };
      const page = pager.read(query, binding, now);
      const site = await readSite(context, request);
      const backup = await findBackup(database.pool, site, params.backupId);
      if (backup === null) throw problem('site_backup_not_found');
      const after = page.after === null ? -1 : Number(page.after);
      const rows = await listSkipped(database.pool, backup.id, { after, take: page.limit + 1 });
      const give = {
        positionOf: ({ position }: SkippedRow) => String(position),
        view: ({ path, reason }: SkippedRow) => ({ path, reason }),
      };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, give) };
    },
  }) satisfies ReadHandlers<typeof listSiteBackupSkipped>;

export const listBackups = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const page = readListPage(context, backupList, request);
      const { cursor: _cursor, limit: _limit, ...filter } = request.query;
      const site = await readSite(context, request);
      return { status: 200, body: await readSurface(context, context.database.pool, site, page, { filter }) };
    },
  }) satisfies ReadHandlers<typeof listSiteBackups>;

export const getBackup = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const backup = await findBackup(context.database.pool, site, request.params.backupId);
      if (backup === null) throw problem('site_backup_not_found');
      return { status: 200, body: viewBackup(backup, request.now) };
    },
  }) satisfies ReadHandlers<typeof getSiteBackup>;
