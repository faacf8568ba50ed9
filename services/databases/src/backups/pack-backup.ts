import type { LoadFindings } from '@drydock/agent/database';
import { ArchiveError, readFacts, verifyArchive } from '@drydock/archive';
import type { Major } from '@drydock/contracts/databases/major';
import { fail, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { refOf, type WorkContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { recordBackup, recordVerified } from '../databases/database.store';
import { backupPrefix } from '../providers/backup-storage';
import { definitely, translated } from '../providers/database-errors';
import type { HostedDatabase, UpgradeName } from '../providers/database-provider';
import { findBackup, markCompleted, recordProof } from './backup.store';
import type { StoredArchive } from './backup.types';

type Step = StepContext<unknown, unknown>;

/**
 * The limits of steps that move every byte of a database. They allow more attempts than the default, because a failed
 * workflow has done much work for nothing.
 */
export const movingLimits = { timeoutSeconds: 6 * 3_600, attemptsMax: 8 };

/**
 * An instance with the content of a backup needs `overheadFactor` times the unpacked size, for indexes and the
 * write-ahead log, plus `instanceBytes` for an empty instance. Upgrades use the same factor.
 */
const overheadFactor = 2.2;
const instanceBytes = 128 * 2 ** 20;

/** The bytes that an instance with the content of a backup needs beside the serving one. */
export const neededBytes = (rawBytes: number): number => Math.ceil(rawBytes * overheadFactor) + instanceBytes;

/**
 * Describes the database. Throws `storage_full` if the disk of its machine, which databases of all customers share, has
 * no room for an instance with the content of this archive. An archive that an earlier version of Drydock packed
 * passes, because its unpacked size is unknown: null in a record, absent in the output of a step. If `alarm` is given,
 * the failure calls staff with this alarm.
 */
export async function assertRoom(
  { provider }: WorkContext,
  step: Step,
  { rawBytes }: StoredArchive,
  { alarm }: { alarm?: string } = {},
): Promise<HostedDatabase> {
  const hosted = await provider.describe(refOf(step), step.signal);
  if (hosted === null) throw fail('database_not_available', { internal: 'the host has no such database' });
  // If an earlier attempt of this workflow has made the instance, the instance may already take up the room.
  if (rawBytes == null || hosted.upgrade?.upgradeId === step.workflowId) return hosted;
  const [needed, { freeBytes }] = [neededBytes(rawBytes), hosted];
  if (freeBytes >= needed) return hosted;
  throw fail('storage_full', {
    internal: `${needed} bytes needed, ${freeBytes} free`,
    ...(alarm === undefined ? {} : { alarm }),
  });
}

/**
 * Packs the serving instance of the database into a new folder. If `replacedBy` names a restore, packs the instance
 * that this restore has replaced instead. The archive counts as a backup only after its verification.
 */
export async function packBackup(
  { database, provider, backupStorage }: WorkContext,
  step: Step,
  backupId: string,
  replacedBy?: UpgradeName,
): Promise<StoredArchive> {
  const ref = refOf(step);
  const backup = await findBackup(database.pool, ref.databaseId, backupId);
  if (backup === null) throw new Error(`backup ${backupId} has no row`);
  const storageKey = `${backupPrefix(ref, backupId)}/${step.fence}`;
  const { sequence, createdAt } = backup;
  const archive = { sink: backupStorage.sink(storageKey), archiveId: backupId, sequence, createdAt };
  const packed = await definitely(
    provider.pack(ref, archive, { ...fencedCall(step), progress: step.progress }, replacedBy),
  );
  const { manifestMac, checksumSha256, sizeBytes, rawBytes } = packed;
  return { storageKey, manifestMac, checksumSha256, sizeBytes, rawBytes };
}

/**
 * Finds the newest complete archive of a backup in the storage; null if there is none. Drydock has no record of such an
 * archive if its own database was restored to an earlier moment. The manifest is authenticated. The caller still has to
 * verify the content.
 */
export async function findWritten(context: WorkContext, step: Step, backupId: string): Promise<StoredArchive | null> {
  const { backupStorage, archiveKey } = context;
  const ref = refOf(step);
  const fenceOf = (key: string): bigint => BigInt(key.slice(key.lastIndexOf('/') + 1));
  const finished = await backupStorage.listFinished(backupPrefix(ref, backupId));
  for (const storageKey of finished.sort((one, other) => (fenceOf(one) < fenceOf(other) ? 1 : -1))) {
    try {
      const expected = { archiveId: backupId, siteId: ref.databaseId, orgId: ref.orgId };
      const { manifestSha256: checksumSha256, ...facts } = await readFacts(
        backupStorage.source(storageKey),
        archiveKey,
        expected,
      );
      return { storageKey, checksumSha256, ...facts };
    } catch (error) {
      if (!(error instanceof ArchiveError)) throw error;
      step.log.warn({ storage_key: storageKey, internal: error.message }, 'what lies there is not this backup');
    }
  }
  return null;
}

/** Removes the archives of all attempts at the backup. */
export const discardPacked = ({ backupStorage }: WorkContext, step: Step, backupId: string): Promise<void> =>
  backupStorage.removeAll(backupPrefix(refOf(step), backupId));

/**
 * Reads a whole archive and verifies it against the recorded MAC of its manifest. `databaseId` is the database that the
 * backup was taken from.
 */
export async function verifyStored(
  { archiveKey, backupStorage }: WorkContext,
  { orgId, signal }: Pick<Step, 'orgId' | 'signal'>,
  { id: archiveId, databaseId: siteId }: { id: string; databaseId: string },
  { storageKey, manifestMac }: StoredArchive,
): Promise<void> {
  await translated(
    verifyArchive(backupStorage.source(storageKey), archiveKey, { archiveId, siteId, orgId, manifestMac }, { signal }),
  );
}

/** Verifies an archive that was just packed, and removes the archives of all other attempts. */
export async function verifyPacked(
  context: WorkContext,
  step: Step,
  backupId: string,
  archive: StoredArchive,
): Promise<void> {
  await verifyStored(context, step, { id: backupId, databaseId: step.subject.id }, archive);
  await context.backupStorage.removeAll(backupPrefix(refOf(step), backupId), archive.storageKey);
}

interface Load {
  at: string;
  major: Major;
  isProven: boolean;
  /** Absent in the outputs of steps that an earlier version of Drydock ran. */
  loadFindings?: LoadFindings;
}

/**
 * Proves that the backup can be restored: loads it into a scratch instance and reads a row back as a client. `isProven`
 * is false if no row could be read, for example because all tables are empty. `loadFindings` names the parts that are
 * missing, changed or unproven.
 */
export async function proveRestorable(
  { provider, backupStorage }: WorkContext,
  step: Step,
  backup: { backupId: string; major: Major; archive: StoredArchive },
): Promise<Pick<Load, 'isProven' | 'loadFindings'>> {
  const { archive, backupId: archiveId, major } = backup;
  const source = backupStorage.source(archive.storageKey);
  const call = { ...fencedCall(step), progress: step.progress };
  const toVerify = { source, archiveId, manifestMac: archive.manifestMac };
  const { readFrom, findings } = await definitely(provider.verifyRestore(refOf(step), major, toVerify, call));
  return { isProven: readFrom !== null, loadFindings: [...findings] };
}

export async function completeBackup(
  tx: Tx,
  databaseId: string,
  backupId: string,
  archive: StoredArchive,
  at: Date,
): Promise<void> {
  await markCompleted(tx, backupId, archive, at);
  await recordBackup(tx, databaseId, at);
}

/**
 * Records that the whole backup was loaded into an instance of `major`. The database's `restoreVerifiedAt` changes only
 * if a row was also read back (`isProven`).
 */
export async function recordLoad(
  tx: Tx,
  databaseId: string,
  backupId: string,
  { at, major, isProven, loadFindings = [] }: Load,
): Promise<void> {
  await recordProof(tx, backupId, { of: 'content', major, at, refused: [], findings: [...loadFindings] });
  if (isProven) await recordVerified(tx, databaseId, new Date(at));
}
