import { isFrontPageLost, type Skipped, type SkippedPath } from '@drydock/agent/site';
import type { BackupFilter, BackupKind } from '@drydock/contracts/hosting/backups';
import { createdBetween, oneOf } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';
import type { Backup as BackupRow } from '../generated/prisma/client';
import type { BackupLocation } from '../providers/backup-storage';
import type { RecordedAnswer } from '../sites/probe.rules';
import { nextBackupSequence } from '../sites/site.store';
import type { Owner } from '../sites/site.types';
import type { Backup, KeptBackup, StoredArchive } from './backup.rules';
import { type SkippedSummary, sampleSize } from './skipped.view';

/** Records the paths that an attempt at a backup has skipped. Replaces the list of an earlier attempt. */
export async function replaceSkipped(tx: Tx, backupId: string, { count, paths }: Skipped): Promise<void> {
  const list = JSON.stringify(paths.map(storable));
  await tx.$executeRaw`DELETE FROM backup_skipped_paths WHERE backup_id = ${backupId}::uuid`;
  await tx.$executeRaw`
    INSERT INTO backup_skipped_paths (backup_id, position, path, reason)
    SELECT ${backupId}::uuid, number - 1, skipped->>'path', skipped->>'reason'
    FROM jsonb_array_elements(${list}::jsonb) WITH ORDINALITY AS listed (skipped, number)`;
  await tx.$executeRaw`
    UPDATE backups SET skipped_count = ${count}, includes_files = ${!paths.some(isFrontPageLost)}
    WHERE id = ${backupId}::uuid`;
}

/** Replaces NUL and unpaired surrogates, which Postgres text cannot hold. */
export const storable = ({ path, reason }: SkippedPath): SkippedPath => ({
  path: Buffer.from(path).toString().replaceAll('\0', '\ufffd'),
  reason,
});

/**
 * Resolves with the number of skipped paths and a sample of them, by the id of the backup. A backup without skipped
 * paths has no entry. The caller has checked that the site belongs to the requesting organisation.
 */
async function listSkippedOfSite(tx: Reader, siteId: string): Promise<Map<string, SkippedSummary>> {
  const rows = await tx.$queryRaw<{ id: string; count: bigint; path: string; reason: string }[]>`
    SELECT backup.id, skipped_count AS count, path, reason
    FROM backups backup JOIN backup_skipped_paths skipped ON skipped.backup_id = backup.id AND position < ${sampleSize}
    WHERE site_id = ${siteId}::uuid AND skipped_count > 0 ORDER BY backup.id, position`;
  const found = new Map<string, SkippedSummary>();
  for (const { id, count, path, reason } of rows) {
    const ofBackup = found.get(id) ?? { count: Number(count), sample: [] };
    ofBackup.sample.push({ path, reason });
    found.set(id, ofBackup);
  }
  return found;
}

export interface SkippedRow extends SkippedPath {
  position: number;
}

/**
 * Lists the skipped paths of a backup that come after position `after`. The caller has checked that the backup belongs
 * to the requesting organisation.
 */
export function listSkipped(
  tx: Reader,
  backupId: string,
  { after, take }: { after: number; take: number },
): Promise<SkippedRow[]> {
  return tx.$queryRaw<SkippedRow[]>`
    SELECT position, path, reason FROM backup_skipped_paths
    WHERE backup_id = ${backupId}::uuid AND position > ${after} ORDER BY position LIMIT ${take}`;
}

/**
 * The last backup that an abandoned deletion has taken; null if there is none. Its missing expiry identifies it,
 * because every other completed backup of an existing site has an expiry.
 */
export async function findLeftBackup(tx: Reader, siteId: string): Promise<string | null> {
  const row = await tx.backup.findFirst({
    where: { siteId, status: 'completed', expiresAt: null },
    orderBy: { id: 'desc' },
    select: { id: true },
  });
  return row?.id ?? null;
}

/** The id of the site's newest completed backup that has not expired. Null if there is no such backup. */
export async function findNewestBackup(tx: Reader, siteId: string, now: Date): Promise<string | null> {
  const row = await tx.backup.findFirst({
    where: { siteId, status: 'completed', expiresAt: { gt: now } },
    orderBy: { id: 'desc' },
    select: { id: true },
  });
  return row?.id ?? null;
}

/** Removes the expiry of a completed backup, which then stays until its deleted site is purged. */
export async function keepBackup(tx: Tx, backupId: string): Promise<void> {
  await tx.backup.updateMany({ where: { id: backupId, status: 'completed' }, data: { expiresAt: null } });
}

function toBackup(row: BackupRow, skipped: Backup['skipped'] = { count: 0, sample: [] }): Backup {
  const {
    storageKey,
    sizeBytes,
    rawBytes,
    checksumSha256,
    manifestMac,
    sequence,
    workflowId: _workflowId,
    purgedAt: _purgedAt,
    httpStatus,
    sqlWorks: isSqlOk,
    ...rest
  } = row;
  return {
    ...rest,
    sequence: Number(sequence),
    skipped,
    answer: { httpStatus, isSqlOk },
    archive: toArchive({ storageKey, sizeBytes, rawBytes, checksumSha256, manifestMac }),
  };
}

/** A check constraint makes the five columns all present or all absent. */
function toArchive(
  row: Pick<BackupRow, 'storageKey' | 'sizeBytes' | 'rawBytes' | 'checksumSha256' | 'manifestMac'>,
): StoredArchive | null {
  const { storageKey, sizeBytes, rawBytes, checksumSha256, manifestMac } = row;
  if (storageKey === null || sizeBytes === null || rawBytes === null || checksumSha256 === null || manifestMac === null)
    return null;
  return { storageKey, sizeBytes: Number(sizeBytes), rawBytes: Number(rawBytes), checksumSha256, manifestMac };
}

interface NewBackup {
  id: string;
  siteId: string;
  kind: BackupKind;
  workflowId: string;
  createdAt: Date;
  location: BackupLocation;
}

/** Inserts a queued backup with the next sequence number of its site. A repeated call inserts no second row. */
export async function insertBackup(tx: Tx, owner: Owner, backup: NewBackup): Promise<void> {
  const sequence = await nextBackupSequence(tx, backup.siteId);
  const { orgId, mode } = owner;
  await tx.backup.createMany({ data: [{ ...backup, orgId, mode, sequence, status: 'queued' }], skipDuplicates: true });
}

/** The site's backup with this id; null if the site has no such backup. */
export async function findBackup(tx: Reader, site: Owner & { id: string }, backupId: string): Promise<Backup | null> {
  const row = await tx.backup.findFirst({
    where: { id: backupId, siteId: site.id, orgId: site.orgId, mode: site.mode },
  });
  if (row === null) return null;
  const [backup = null] = await withSkipped(tx, site.id, [row]);
  return backup;
}

/** Lists the site's backups, newest first. With `after` only those older than the backup `after`. */
export async function listBackups(
  tx: Reader,
  siteId: string,
  { after, take }: { after: string | null; take: number },
  { kind, status, ...created }: BackupFilter = {},
): Promise<Backup[]> {
  const narrowed = { ...oneOf('kind', kind), ...oneOf('status', status), ...createdBetween(created) };
  const where = { siteId, ...(after === null ? {} : { id: { lt: after } }), ...narrowed };
  const rows = await tx.backup.findMany({ where, orderBy: { id: 'desc' }, take });
  return withSkipped(tx, siteId, rows);
}

/**
 * Adds the samples of skipped paths. The column `skipped_count` is 0 in most rows, so most calls need no second query.
 */
async function withSkipped(tx: Reader, siteId: string, rows: readonly BackupRow[]): Promise<Backup[]> {
  const skipped = rows.some(({ skippedCount }) => skippedCount > 0n)
    ? await listSkippedOfSite(tx, siteId)
    : new Map<string, Backup['skipped']>();
  return rows.map((row) => toBackup(row, skipped.get(row.id)));
}

/** The unpacked size of the site's newest completed backup. Null if there is no such backup. */
export async function findLastRawBytes(tx: Reader, siteId: string): Promise<number | null> {
  const row = await tx.backup.findFirst({
    where: { siteId, status: 'completed' },
    orderBy: { id: 'desc' },
    select: { rawBytes: true },
  });
  return row?.rawBytes == null ? null : Number(row.rawBytes);
}

/**
 * The on-demand backups that were accepted after `since`, failed ones too. Their samples of skipped paths are left out.
 */
export async function listOnDemand(tx: Reader, siteId: string, since: Date): Promise<Backup[]> {
  const rows = await tx.backup.findMany({ where: { siteId, kind: 'on_demand', createdAt: { gt: since } } });
  return rows.map((row) => toBackup(row));
}

export async function markRunning(tx: Tx, backupId: string): Promise<void> {
  await tx.backup.updateMany({ where: { id: backupId, status: 'queued' }, data: { status: 'running' } });
}

/** A backup with `expiresAt` null stays until its deleted site is purged. */
export async function markCompleted(
  tx: Tx,
  backupId: string,
  archive: StoredArchive,
  kept: KeptBackup & { expiresAt: Date | null; answer: RecordedAnswer },
): Promise<void> {
  const { completedAt, expiresAt, lockedUntil, location, answer } = kept;
  const answered = { httpStatus: answer.httpStatus, sqlWorks: answer.isSqlOk };
  const times = {
    completedAt: new Date(completedAt),
    expiresAt,
    lockedUntil: lockedUntil === null ? null : new Date(lockedUntil),
  };
  const { storageKey, sizeBytes, rawBytes, checksumSha256, manifestMac } = archive;
  const data = {
    status: 'completed' as const,
    storageKey,
    sizeBytes,
    rawBytes,
    checksumSha256,
    manifestMac,
    ...times,
    ...answered,
    location,
  };
  const { count } = await tx.backup.updateMany({
    where: { id: backupId, status: { in: ['queued', 'running', 'completed'] } },
    data,
  });
  if (count !== 1) throw new Error(`backup ${backupId} cannot be completed`);
}

/** Marks a queued or running backup as failed. Any other backup stays as it is. */
export async function markFailed(tx: Tx, backupId: string, errorCode: string): Promise<void> {
  await tx.backup.updateMany({
    where: { id: backupId, status: { in: ['queued', 'running'] } },
    data: { status: 'failed', errorCode },
  });
}

/**
 * Sets the time at which `sweep_backups` next considers the site whose nightly backup has failed. Does nothing for a
 * backup of another kind.
 */
export async function lookAgain(tx: Tx, backupId: string, at: Date): Promise<void> {
  await tx.$executeRaw`
    UPDATE sites SET next_backup_at = ${at} FROM backups WHERE backups.id = ${backupId}::uuid
    AND backups.kind = 'scheduled' AND sites.id = backups.site_id`;
}
