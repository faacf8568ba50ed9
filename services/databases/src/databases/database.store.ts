import type { DatabaseFilter, DatabaseStatus } from '@drydock/contracts/databases/databases';
import { type Metadata, metadataSchema } from '@drydock/contracts/platform/values';
import { carrying, createdBetween, holding, lockRow, oneOf, type Sql } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';
import { type ManagedDatabase as DatabaseRow, Prisma } from '../generated/prisma/client';
import type { ManagedDatabase, Owner } from './database.types';

const toDatabase = ({ backupSequence: _sequence, storageState: _state, ...row }: DatabaseRow): ManagedDatabase => ({
  ...row,
  metadata: metadataSchema.parse(row.metadata),
});

export type NewDatabase = Omit<
  ManagedDatabase,
  'status' | 'statusDetail' | 'host' | 'port' | 'lastBackupAt' | 'restoreVerifiedAt'
>;

export async function insertDatabase(tx: Tx, database: NewDatabase): Promise<ManagedDatabase> {
  return toDatabase(await tx.managedDatabase.create({ data: { ...database, status: 'provisioning' } }));
}

const theirs = ({ orgId, mode }: Owner) => ({ orgId, mode, status: { not: 'deleted' as const } });

/** The owner's database. Null if it does not exist, was deleted, or belongs to another organisation or mode. */
export async function findDatabase(tx: Reader, owner: Owner, databaseId: string): Promise<ManagedDatabase | null> {
  const row = await tx.managedDatabase.findFirst({ where: { id: databaseId, ...theirs(owner) } });
  return row === null ? null : toDatabase(row);
}

/**
 * Finds a database like {@link findDatabase}, and locks its row until the transaction ends. The state that the caller
 * checks then cannot change before the caller's writes are committed.
 */
export async function lockDatabase(tx: Tx, owner: Owner, databaseId: string): Promise<ManagedDatabase | null> {
  const table = { name: 'managed_databases', fields: Prisma.ManagedDatabaseScalarFieldEnum };
  const row = await lockRow<DatabaseRow>(tx, table, owner, databaseId);
  return row === null || row.status === 'deleted' ? null : toDatabase(row);
}

/** Sets the label and the metadata. The caller has locked the row. */
export async function describeDatabase(
  tx: Tx,
  databaseId: string,
  change: { label: string; metadata: Metadata },
): Promise<ManagedDatabase> {
  return toDatabase(await tx.managedDatabase.update({ where: { id: databaseId }, data: change }));
}

/** Lists at most `take` databases, newest first. If `after` is not null, only those older than `after` are listed. */
export async function listDatabases(
  tx: Reader,
  owner: Owner,
  page: { after: string | null; take: number },
  { status, storage, text, metadata, ...created }: DatabaseFilter,
): Promise<ManagedDatabase[]> {
  const narrowed = {
    AND: oneOf('status', status),
    ...oneOf('storageState', storage),
    ...holding(text, 'label'),
    ...carrying(metadata),
    ...createdBetween(created),
  };
  const rows = await tx.managedDatabase.findMany({
    where: { ...theirs(owner), ...(page.after === null ? {} : { id: { lt: page.after } }), ...narrowed },
    orderBy: { id: 'desc' },
    take: page.take,
  });
  return rows.map(toDatabase);
}

export async function changeStatus(
  tx: Tx,
  databaseId: string,
  status: DatabaseStatus,
  statusDetail = '',
): Promise<void> {
  await tx.managedDatabase.update({ where: { id: databaseId }, data: { status, statusDetail } });
}

/**
 * Shows a database as available while its upgrade or restore waits for staff after the switch, because the database
 * then serves and takes writes. Does nothing unless the step `cutover` is recorded as succeeded.
 */
export async function showServing(sql: Sql, databaseId: string, workflowId: string): Promise<void> {
  const detail = 'It serves. Our staff bring its last change to an end, and nothing else can be done to it until then.';
  await sql.query(
    `UPDATE managed_databases SET status = 'available', status_detail = $3 WHERE id = $1::uuid
      AND status = 'provisioning'
      AND EXISTS (SELECT FROM workflow_step
        WHERE workflow_id = $2::uuid AND name = 'cutover' AND status = 'succeeded')`,
    [databaseId, workflowId, detail],
  );
}

export async function recordAddress(
  tx: Tx,
  databaseId: string,
  address: { host: string; port: number },
): Promise<void> {
  await tx.managedDatabase.update({ where: { id: databaseId }, data: address });
}

export async function recordVersion(tx: Tx, databaseId: string, engineVersion: string): Promise<void> {
  await tx.managedDatabase.update({ where: { id: databaseId }, data: { engineVersion } });
}

export async function recordBackup(tx: Tx, databaseId: string, lastBackupAt: Date): Promise<void> {
  await tx.managedDatabase.update({ where: { id: databaseId }, data: { lastBackupAt } });
}

export async function recordVerified(tx: Tx, databaseId: string, restoreVerifiedAt: Date): Promise<void> {
  await tx.managedDatabase.update({ where: { id: databaseId }, data: { restoreVerifiedAt } });
}

/**
 * Reserves the next sequence number of the database's backups. It is greater than all earlier numbers. Backups that
 * failed have numbers too, so numbers can be missing among completed backups.
 */
export async function nextBackupSequence(tx: Tx, databaseId: string): Promise<bigint> {
  const { backupSequence } = await tx.managedDatabase.update({
    where: { id: databaseId },
    data: { backupSequence: { increment: 1 } },
    select: { backupSequence: true },
  });
  return backupSequence;
}
