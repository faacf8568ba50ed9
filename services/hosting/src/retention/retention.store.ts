import { firstIdOf, type Mode } from '@drydock/contracts/platform/values';
import type { Reader, Tx } from '../context/database.store';
import { siteResourceKey } from '../sites/site.types';
import type { SiteOfTheNight } from './nightly.rules';

const unfinished = ['queued', 'running', 'needs_attention'];

async function findBusySites(tx: Reader, siteIds: readonly string[]): Promise<Set<string>> {
  const siteOf = new Map(siteIds.map((siteId) => [siteResourceKey(siteId), siteId]));
  const rows = await tx.workflow.findMany({
    where: { resourceKey: { in: [...siteOf.keys()] }, status: { in: unfinished } },
    select: { resourceKey: true },
  });
  return new Set(rows.flatMap(({ resourceKey }) => siteOf.get(resourceKey) ?? []));
}

/** How many sites one transaction locks. A request that needs one of these rows waits until the transaction ends. */
export const pageSites = 25;
/** How far back scheduled backups are read: two days, which is longer than from one slot of a site to the next. */
const lookBackMs = 48 * 3_600_000;

export type NightlySite = SiteOfTheNight & { orgId: string };

/**
 * Locks the sites whose nightly backup is to be considered, the longest waiting first, until the transaction ends.
 * Leaves out sites that another transaction has locked.
 */
export async function takeNightlySites(tx: Tx, mode: Mode, now: Date): Promise<NightlySite[]> {
  const sites = await tx.$queryRaw<Array<Omit<NightlySite, 'isBusy' | 'scheduled'>>>`
    SELECT id, org_id AS "orgId", platform::text, status::text, created_at AS "createdAt" FROM sites
    WHERE mode = ${mode}::mode AND daily_backups AND next_backup_at <= ${now} ORDER BY next_backup_at, id
    LIMIT ${pageSites}
    FOR NO KEY UPDATE SKIP LOCKED`;
  const siteIds = sites.map(({ id }) => id);
  // The id of a backup contains its time, so this condition limits the query to the last days.
  const scheduled = await tx.backup.findMany({
    where: { siteId: { in: siteIds }, id: { gte: firstIdOf(new Date(now.getTime() - lookBackMs)) }, kind: 'scheduled' },
    select: { siteId: true, createdAt: true, status: true },
  });
  const busy = await findBusySites(tx, siteIds);
  return sites.map((site) => ({
    ...site,
    isBusy: busy.has(site.id),
    scheduled: scheduled
      .filter(({ siteId }) => siteId === site.id)
      .map(({ createdAt, status }) => ({ createdAt, hasFailed: status === 'failed' })),
  }));
}

export async function setNextLooks(tx: Tx, looks: ReadonlyArray<{ siteId: string; at: Date }>): Promise<void> {
  await tx.$executeRaw`
    UPDATE sites SET next_backup_at = look.at
    FROM unnest(${looks.map(({ siteId }) => siteId)}::uuid[],
      ${looks.map(({ at }) => at.toISOString())}::timestamptz[]) look (id, at)
    WHERE sites.id = look.id`;
}

const pageBackups = 100;
/**
 * From this age on the data of a failed backup is usually not locked any more, because a lock lasts for
 * `immutableDays`.
 */
const failedAgeMs = 31 * 24 * 3_600_000;

interface Spent {
  id: string;
  siteId: string;
}

/** A position in a list that is ordered by time. */
export interface Place {
  at: Date;
  id: string;
}

export const beginning: Place = { at: new Date(0), id: '00000000-0000-0000-0000-000000000000' };

/** `next` is the position from which the next page goes on; null after the last page. */
interface Page<Row> {
  rows: Row[];
  next: Place | null;
}

const pageOf = <Row extends Place>(rows: Row[], kept: Row[]): Page<Row> => ({
  rows: kept,
  next: rows.length < pageBackups ? null : (rows.at(-1) ?? null),
});

/** Leaves out backups that unfinished work on their sites may still read. */
async function withoutBusy<Row extends Spent>(tx: Reader, rows: readonly Row[]): Promise<Row[]> {
  const busy = await findBusySites(
    tx,
    rows.map(({ siteId }) => siteId),
  );
  return rows.filter(({ siteId }) => !busy.has(siteId));
}

/**
 * Marks a page of completed backups past their retention as expired, the earliest expiry first. The last backup of a
 * deleted site stays while the site can be restored; the purge removes it. Resolves with the position from which the
 * next call goes on, or with null at the end.
 */
export async function expirePage(tx: Tx, mode: Mode, now: Date, after: Place): Promise<Place | null> {
  const past = await tx.$queryRaw<Array<Spent & Place>>`
    SELECT id, site_id AS "siteId", expires_at AS at FROM backups
    WHERE mode = ${mode}::mode AND status = 'completed' AND expires_at <= ${now}
    AND (expires_at, id) > (${after.at}, ${after.id}::uuid)
    ORDER BY expires_at, id LIMIT ${pageBackups}`;
  const last = await tx.deletedSite.findMany({
    // A site that was restored does not need its last backup any more.
    where: { backupId: { in: past.map(({ id }) => id) }, purgedAt: null, restoredAt: null },
    select: { backupId: true },
  });
  const needed = new Set(last.map(({ backupId }) => backupId));
  const spent = await withoutBusy(
    tx,
    past.filter(({ id }) => !needed.has(id)),
  );
  const ids = spent.map(({ id }) => id);
  if (ids.length > 0)
    await tx.backup.updateMany({ where: { id: { in: ids }, status: 'completed' }, data: { status: 'expired' } });
  return pageOf(past, past).next;
}

export interface Leftover extends Spent, Place {
  orgId: string;
  mode: Mode;
  /** Null if the backup failed. Then any of its attempts may have left data. */
  storageKey: string | null;
}

/** Expired backups whose data is still there and not locked, ordered by the time when their lock ended. */
export async function listExpired(tx: Reader, mode: Mode, now: Date, after: Place): Promise<Page<Leftover>> {
  const rows = await tx.$queryRaw<Leftover[]>`
    SELECT id, site_id AS "siteId", org_id AS "orgId", mode::text, storage_key AS "storageKey",
      coalesce(locked_until, '1970-01-01T00:00:00Z') AS at FROM backups
    WHERE mode = ${mode}::mode AND status = 'expired' AND purged_at IS NULL
    AND coalesce(locked_until, '1970-01-01T00:00:00Z') <= ${now}
      AND (coalesce(locked_until, '1970-01-01T00:00:00Z'), id) > (${after.at}, ${after.id}::uuid)
    ORDER BY coalesce(locked_until, '1970-01-01T00:00:00Z'), id LIMIT ${pageBackups}`;
  return pageOf(rows, await withoutBusy(tx, rows));
}

/** Failed backups that are at least `failedAgeMs` old and not on record as locked, oldest first. */
export async function listFailed(tx: Reader, mode: Mode, now: Date, after: Place): Promise<Page<Leftover>> {
  const rows = await tx.$queryRaw<Leftover[]>`
    SELECT id, site_id AS "siteId", org_id AS "orgId", mode::text, storage_key AS "storageKey", created_at AS at
    FROM backups
    WHERE mode = ${mode}::mode AND status = 'failed' AND purged_at IS NULL
    AND created_at <= ${new Date(now.getTime() - failedAgeMs)}
      AND (created_at, id) > (${after.at}, ${after.id}::uuid) AND (locked_until IS NULL OR locked_until <= ${now})
    ORDER BY created_at, id LIMIT ${pageBackups}`;
  return pageOf(rows, await withoutBusy(tx, rows));
}

export async function markPurged(tx: Tx, ids: readonly string[], at: Date): Promise<void> {
  await tx.backup.updateMany({ where: { id: { in: [...ids] } }, data: { purgedAt: at } });
}
