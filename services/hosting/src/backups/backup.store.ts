import type { BackupFilter, BackupKind } from '@drydock/contracts/hosting/backups';
import { createdBetween, oneOf } from '@drydock/service/database/list-filter';
import type { Reader, Tx } from '../database.store';
import type { Backup as BackupRow } from '../generated/prisma/client';
import type { BackupLocation } from '../providers/backup-storage';
import type { RecordedAnswer } from '../sites/probe.rules';
import { nextBackupSequence } from '../sites/site.store';
import type { Owner } from '../sites/site.types';
import type { Backup, KeptBackup, StoredArchive } from './backup.types';
import { listSkippedOfSite } from './skipped.store';

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

export interface NewBackup {
  id: string;
  siteId: string;
  kind: BackupKind;
  workflowId: string;
  createdAt: Date;
  /** Where it will be written. */
  location: BackupLocation;
}

/**
 * Inserts a queued backup with the next sequence number of its site. A second call with the same id changes nothing.
 */
export async function insertBackup(tx: Tx, owner: Owner, backup: NewBackup): Promise<void> {
  const sequence = await nextBackupSequence(tx, backup.siteId);
  const { orgId, mode } = owner;
  await tx.backup.createMany({ data: [{ ...backup, orgId, mode, sequence, status: 'queued' }], skipDuplicates: true });
}

/** The site's backup with this id; null if there is none, or if it is another site's. */
export async function findBackup(tx: Reader, site: Owner & { id: string }, backupId: string): Promise<Backup | null> {
  const row = await tx.backup.findFirst({
    where: { id: backupId, siteId: site.id, orgId: site.orgId, mode: site.mode },
  });
  if (row === null) return null;
  const [backup = null] = await withSkipped(tx, site.id, [row]);
  return backup;
}

/** The site's backups, newest first, behind `after`. */
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

/** Most backups have skipped nothing. Their rows say so, which saves the query. */
async function withSkipped(tx: Reader, siteId: string, rows: readonly BackupRow[]): Promise<Backup[]> {
  const skipped = rows.some(({ skippedCount }) => skippedCount > 0n)
    ? await listSkippedOfSite(tx, siteId)
    : new Map<string, Backup['skipped']>();
  return rows.map((row) => toBackup(row, skipped.get(row.id)));
}

/** How much the site's newest completed backup holds, unpacked; null without one. */
export async function findLastRawBytes(tx: Reader, siteId: string): Promise<number | null> {
  const row = await tx.backup.findFirst({
    where: { siteId, status: 'completed' },
    orderBy: { id: 'desc' },
    select: { rawBytes: true },
  });
  return row?.rawBytes == null ? null : Number(row.rawBytes);
}

/** The on-demand backups made after `since`, which count towards the allowance. */
export async function listOnDemand(tx: Reader, siteId: string, since: Date): Promise<Backup[]> {
  const rows = await tx.backup.findMany({ where: { siteId, kind: 'on_demand', createdAt: { gt: since } } });
  return rows.map((row) => toBackup(row));
}

export async function markRunning(tx: Tx, backupId: string): Promise<void> {
  await tx.backup.updateMany({ where: { id: backupId, status: 'queued' }, data: { status: 'running' } });
}

/** `expiresAt` null: the backup is kept as long as the deleted site that needs it. */
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

/** Does nothing to a backup that has completed. */
export async function markFailed(tx: Tx, backupId: string, errorCode: string): Promise<void> {
  await tx.backup.updateMany({
    where: { id: backupId, status: { in: ['queued', 'running'] } },
    data: { status: 'failed', errorCode },
  });
}
