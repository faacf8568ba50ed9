import type { DatabaseBackupFilter, DatabaseBackupKind } from '@drydock/contracts/databases/database-backups';
import { firstIdOf } from '@drydock/contracts/platform/values';
import { createdBetween, oneOf, type Sql } from '@drydock/service/database';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition';
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

/**
 * The times after `since` at which backups of the database were requested on demand, newest first, and at most `take`
 * of them. Failed backups are left out. The times are read from the workflows, because customers can delete the records
 * of backups.
 */
export async function listOrderTimes(tx: Reader, databaseId: string, since: Date, take: number): Promise<Date[]> {
  const rows = await tx.workflow.findMany({
    where: {
      subjectType: 'database',
      subjectId: databaseId,
      kind: 'take_database_backup',
      status: { not: 'failed' },
      // The id of a workflow contains its time, so this condition limits the query to the last workflows.
      id: { gte: firstIdOf(since) },
      createdAt: { gt: since },
    },
    orderBy: { createdAt: 'desc' },
    select: { createdAt: true },
    take,
  });
  return rows.map(({ createdAt }) => createdAt);
}

/** Counts the on-demand backups of the database that did not fail. */
export const countOnDemand = (tx: Reader, databaseId: string): Promise<number> =>
  tx.databaseBackup.count({ where: { databaseId, kind: 'on_demand', status: { not: 'failed' } } });

/**
 * Locks the backup until the transaction ends. Waits for each transaction that holds {@link keepBackup} to create a
 * database from the backup. The workflows of these creations are visible afterwards.
 */
export async function lockBackup(tx: Tx, backupId: string): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM database_backups WHERE id = ${backupId}::uuid FOR UPDATE`;
}

/** Prevents the deletion of a backup of the owner until the transaction ends. */
export async function keepBackup(tx: Tx, { orgId, mode }: Owner, backupId: string): Promise<void> {
  await tx.$queryRaw`
    SELECT 1 FROM database_backups backup JOIN managed_databases database ON database.id = backup.database_id
    WHERE backup.id = ${backupId}::uuid AND database.org_id = ${orgId}::uuid AND database.mode = ${mode}::mode
    FOR KEY SHARE OF backup`;
}

/** An unfinished workflow that creates a database from the backup; null if there is none. */
export async function findCreation(
  sql: Sql,
  { orgId, mode }: Owner,
  backupId: string,
): Promise<UnfinishedWorkflow | null> {
  const [creation] = await sql.query<UnfinishedWorkflow>(
    `SELECT id, kind, status FROM workflow
      WHERE status IN ('queued', 'running', 'needs_attention') AND kind = 'create_database_from_backup'
        AND org_id = $1::uuid AND mode = $2 AND input->>'backupId' = $3
      LIMIT 1`,
    [orgId, mode, backupId],
  );
  return creation ?? null;
}

/** Deletes the record of the backup, and sets the time of the database's last backup to that of the newest left. */
export async function deleteRecord(tx: Tx, databaseId: string, backupId: string): Promise<void> {
  await tx.databaseBackup.deleteMany({ where: { id: backupId, databaseId } });
  await tx.$executeRaw`
    UPDATE managed_databases SET last_backup_at = (SELECT max(completed_at) FROM database_backups
      WHERE database_id = ${databaseId}::uuid AND status = 'completed')
    WHERE id = ${databaseId}::uuid`;
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
