import type { OffsiteCopyKind } from '@drydock/contracts/hosting/offsite';
import { storable } from '../backups/backup.store';
import { type SkippedSummary, skippedSummarySchema } from '../backups/skipped.view';
import type { Reader, Tx } from '../context/database.store';
import type { OffsiteCopy as CopyRow } from '../generated/prisma/client';
import type { Destination } from '../providers/offsite-place.types';
import type { RecordedAnswer } from '../sites/probe.rules';
import { nextBackupSequence } from '../sites/site.store';
import type { Copy, CopyArchive } from './offsite.types';

function toCopy(row: CopyRow): Copy {
  const {
    id,
    destinationId,
    kind,
    status,
    parentId,
    sequence,
    skipped,
    createdAt,
    completedAt,
    verifiedAt,
    missingAt,
  } = row;
  return {
    id,
    destinationId,
    kind,
    status,
    parentId,
    sequence: Number(sequence),
    archive: toArchive(row),
    answer: { httpStatus: row.httpStatus, isSqlOk: row.sqlWorks },
    skipped: skipped === null ? { count: 0, sample: [] } : skippedSummarySchema.parse(skipped),
    createdAt,
    completedAt,
    verifiedAt,
    missingAt,
  };
}

/** A check constraint makes the five columns all present or all absent. */
function toArchive({ objectKey, sizeBytes, rawBytes, manifestSha256, manifestMac }: CopyRow): CopyArchive | null {
  if (objectKey === null || sizeBytes === null || rawBytes === null || manifestSha256 === null || manifestMac === null)
    return null;
  return { objectKey, sizeBytes: Number(sizeBytes), rawBytes: Number(rawBytes), manifestSha256, manifestMac };
}

/** All copies at a destination, newest first. */
export async function listCopies(tx: Reader, { id, siteId, orgId, mode }: Destination): Promise<Copy[]> {
  const rows = await tx.offsiteCopy.findMany({
    where: { destinationId: id, siteId, orgId, mode },
    orderBy: { id: 'desc' },
  });
  return rows.map(toCopy);
}

/** One copy of a site, whatever destination it is at; null when it is another's. */
export async function findCopy(tx: Reader, siteId: string, copyId: string): Promise<Copy | null> {
  const row = await tx.offsiteCopy.findFirst({ where: { id: copyId, siteId } });
  return row === null ? null : toCopy(row);
}

export interface NewCopy {
  id: string;
  kind: OffsiteCopyKind;
  parentId: string | null;
  workflowId: string;
  createdAt: Date;
}

/**
 * Inserts a copy under way, with the next sequence number of its site. A second call with the same id changes nothing.
 */
export async function insertCopy(
  tx: Tx,
  { id: destinationId, siteId, orgId, mode }: Destination,
  copy: NewCopy,
): Promise<void> {
  const sequence = await nextBackupSequence(tx, siteId);
  await tx.offsiteCopy.createMany({
    data: [{ ...copy, destinationId, siteId, orgId, mode, sequence, status: 'running' }],
    skipDuplicates: true,
  });
}

export async function markCopied(
  tx: Tx,
  copyId: string,
  archive: CopyArchive,
  found: { skipped: SkippedSummary; answer: RecordedAnswer },
  at: Date,
): Promise<void> {
  const { skipped, answer } = found;
  const sample = skipped.sample.map((path) => ({ ...storable(path) }));
  const told = { count: skipped.count, sample };
  const data = {
    status: 'completed' as const,
    ...archive,
    skipped: told,
    httpStatus: answer.httpStatus,
    sqlWorks: answer.isSqlOk,
    completedAt: at,
    verifiedAt: at,
  };
  const { count } = await tx.offsiteCopy.updateMany({
    where: { id: copyId, status: { in: ['running', 'completed'] } },
    data,
  });
  if (count !== 1) throw new Error(`copy ${copyId} cannot be completed`);
}

/** Does nothing to a copy that has completed. */
export async function markCopyFailed(tx: Tx, copyId: string, errorCode: string): Promise<void> {
  await tx.offsiteCopy.updateMany({ where: { id: copyId, status: 'running' }, data: { status: 'failed', errorCode } });
}

/** Records that every byte of them was read and every HMAC compared. */
export async function markVerified(tx: Tx, copyIds: readonly string[], verifiedAt: Date): Promise<void> {
  await tx.offsiteCopy.updateMany({
    where: { id: { in: [...copyIds] }, status: 'completed' },
    data: { verifiedAt, missingAt: null },
  });
}

/** Records which copies' manifests were found in the storage. */
export async function recordPresence(
  tx: Tx,
  seen: { present: readonly string[]; missing: readonly string[] },
  at: Date,
): Promise<void> {
  await tx.offsiteCopy.updateMany({
    where: { id: { in: [...seen.missing] }, missingAt: null },
    data: { missingAt: at },
  });
  await tx.offsiteCopy.updateMany({
    where: { id: { in: [...seen.present] }, missingAt: { not: null } },
    data: { missingAt: null },
  });
}
