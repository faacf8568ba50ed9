import type { DatabaseBackupFilter, DatabaseBackupKind } from '@drydock/contracts/databases/database-backups';
import { createdBetween, oneOf } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';
import { nextBackupSequence } from '../databases/database.store';
import type { Owner } from '../databases/database.types';
import type { DatabaseBackup as Row } from '../generated/prisma/client';
import { type BackupProof, type DatabaseBackup, proofSchema, type StoredArchive } from './backup.types';

function toBackup(row: Row): DatabaseBackup {
  const {
    storageKey,
    sizeBytes,
    rawBytes,
    manifestMac,
    checksumSha256,
    sequence,
    errorCode: _code,
    proof,
    ...rest
  } = row;
  // A check constraint requires that all of these columns are set, or none.
  const isStored = storageKey !== null && sizeBytes !== null && manifestMac !== null && checksumSha256 !== null;
  const archive = isStored
    ? {
        storageKey,
        sizeBytes: Number(sizeBytes),
        rawBytes: rawBytes === null ? null : Number(rawBytes),
        manifestMac,
        checksumSha256,
      }
    : null;
  return { ...rest, sequence: Number(sequence), archive, proof: proof === null ? null : proofSchema.parse(proof) };
}

export interface NewBackup {
  id: string;
  databaseId: string;
  kind: DatabaseBackupKind;
  engineVersion: string;
  createdAt: Date;
}

/**
 * Inserts a queued backup with the next sequence number of its database. A second call with the same id inserts nothing
 * and only uses up a sequence number.
 */
export async function insertBackup(tx: Tx, backup: NewBackup): Promise<void> {
  const sequence = await nextBackupSequence(tx, backup.databaseId);
  await tx.databaseBackup.createMany({ data: [{ ...backup, sequence, status: 'queued' }], skipDuplicates: true });
}

export async function findBackup(tx: Reader, databaseId: string, backupId: string): Promise<DatabaseBackup | null> {
  const row = await tx.databaseBackup.findFirst({ where: { id: backupId, databaseId } });
  return row === null ? null : toBackup(row);
}

/** The times of the on-demand backups since then that did not fail, newest first. At most `take` are given. */
export async function listOnDemandTimes(tx: Reader, databaseId: string, since: Date, take: number): Promise<Date[]> {
  const rows = await tx.databaseBackup.findMany({
    where: { databaseId, kind: 'on_demand', status: { not: 'failed' }, createdAt: { gt: since } },
    orderBy: { createdAt: 'desc' },
    select: { createdAt: true },
    take,
  });
  return rows.map(({ createdAt }) => createdAt);
}

/** Counts the completed backups of the database. Only these can be restored. */
export const countCompleted = (tx: Reader, databaseId: string): Promise<number> =>
  tx.databaseBackup.count({ where: { databaseId, status: 'completed' } });

/** Finds a backup of any database of the owner, except deleted databases. */
export async function findBackupOf(
  tx: Reader,
  { orgId, mode }: Owner,
  backupId: string,
): Promise<DatabaseBackup | null> {
  const database = { orgId, mode, status: { not: 'deleted' as const } };
  const row = await tx.databaseBackup.findFirst({ where: { id: backupId, database } });
  return row === null ? null : toBackup(row);
}

/** Finds the newest completed backup; null if there is none. */
export async function findNewestBackup(tx: Reader, databaseId: string): Promise<DatabaseBackup | null> {
  const row = await tx.databaseBackup.findFirst({
    where: { databaseId, status: 'completed' },
    orderBy: { id: 'desc' },
  });
  return row === null ? null : toBackup(row);
}

/** Lists at most `take` backups, newest first. If `after` is not null, only backups older than `after` are listed. */
export async function listBackups(
  tx: Reader,
  databaseId: string,
  page: { after: string | null; take: number },
  { kind, status, ...created }: DatabaseBackupFilter,
): Promise<DatabaseBackup[]> {
  const narrowed = { ...oneOf('kind', kind), ...oneOf('status', status), ...createdBetween(created) };
  const rows = await tx.databaseBackup.findMany({
    where: { databaseId, ...(page.after === null ? {} : { id: { lt: page.after } }), ...narrowed },
    orderBy: { id: 'desc' },
    take: page.take,
  });
  return rows.map(toBackup);
}

export async function markRunning(tx: Tx, backupId: string): Promise<void> {
  await tx.databaseBackup.updateMany({ where: { id: backupId, status: 'queued' }, data: { status: 'running' } });
}

export async function markCompleted(
  tx: Tx,
  backupId: string,
  archive: StoredArchive,
  completedAt: Date,
): Promise<void> {
  const { count } = await tx.databaseBackup.updateMany({
    where: { id: backupId, status: { in: ['queued', 'running', 'completed'] } },
    data: { status: 'completed', ...archive, completedAt },
  });
  if (count !== 1) throw new Error(`backup ${backupId} cannot be completed`);
}

export async function recordProof(tx: Tx, backupId: string, proof: BackupProof): Promise<void> {
  await tx.databaseBackup.updateMany({ where: { id: backupId }, data: { proof } });
}

/** Marks a backup as failed. A backup that has completed stays as it is. */
export async function markFailed(tx: Tx, backupId: string, errorCode: string): Promise<void> {
  await tx.databaseBackup.updateMany({
    where: { id: backupId, status: { in: ['queued', 'running'] } },
    data: { status: 'failed', errorCode },
  });
}
