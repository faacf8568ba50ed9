import type { OffsiteCopyKind } from '@drydock/contracts/hosting/offsite';
import { storable } from '../backups/backup.store';
import { type SkippedSummary, skippedSummarySchema } from '../backups/skipped.view';
import type { Reader, Tx } from '../context/database.store';
import type { OffsiteCopy as CopyRow, OffsiteDestination as DestinationRow } from '../generated/prisma/client';
import type { Destination } from '../providers/offsite-storage';
import type { RecordedAnswer } from '../sites/probe.rules';
import { nextBackupSequence } from '../sites/site.store';
import type { Owner } from '../sites/site.types';
import type { Copy, CopyArchive } from './offsite.rules';

function toDestination({ credentials, createdAt: _createdAt, state: _state, ...row }: DestinationRow): Destination {
  return { ...row, sealedCredentials: credentials === null ? null : Buffer.from(credentials) };
}

type OwnedSite = Owner & { id: string };

/** The destination of the site's copies; null if none is configured. */
export async function findActive(tx: Reader, site: OwnedSite): Promise<Destination | null> {
  const { id: siteId, orgId, mode } = site;
  const row = await tx.offsiteDestination.findFirst({ where: { siteId, orgId, mode, state: 'active' } });
  return row === null ? null : toDestination(row);
}

/** The site's destination with this id. Null if the site has no such destination, or if the destination was removed. */
export async function findUsable(tx: Reader, site: OwnedSite, destinationId: string): Promise<Destination | null> {
  const { id: siteId, orgId, mode } = site;
  const row = await tx.offsiteDestination.findFirst({
    where: { id: destinationId, siteId, orgId, mode, state: { in: ['pending', 'active'] } },
  });
  return row === null ? null : toDestination(row);
}

export type NewDestination = Omit<Destination, 'encryptionKeyId' | 'lastErrorCode' | 'sealedCredentials'> & {
  sealedCredentials: Buffer;
};

/** Inserts a destination that has not been probed yet. */
export async function insertPending(tx: Tx, { sealedCredentials, ...destination }: NewDestination): Promise<void> {
  await tx.offsiteDestination.create({
    data: { ...destination, state: 'pending', credentials: new Uint8Array(sealedCredentials) },
  });
}

/**
 * Makes the pending destination the site's only active one. If the site had a destination with the same endpoint,
 * bucket and prefix before, its row becomes active again and takes the new region and credentials. Then the pending row
 * is removed, and the old copies are known again.
 */
export async function activate(tx: Tx, destinationId: string, encryptionKeyId: string): Promise<void> {
  const pending = await tx.offsiteDestination.findUnique({ where: { id: destinationId } });
  if (pending === null || pending.state !== 'pending') return;
  const { siteId, endpoint, bucket, prefix, region, credentials } = pending;
  await tx.offsiteDestination.updateMany({
    where: { siteId, state: 'active' },
    data: { state: 'removed', credentials: null },
  });
  const known = await tx.offsiteDestination.findFirst({
    where: { siteId, endpoint, bucket, prefix, state: 'removed' },
    orderBy: { id: 'desc' },
  });
  const data = { state: 'active', encryptionKeyId, lastErrorCode: '' } as const;
  if (known === null) {
    await tx.offsiteDestination.update({ where: { id: destinationId }, data });
    return;
  }
  await tx.offsiteDestination.delete({ where: { id: destinationId } });
  await tx.offsiteDestination.update({ where: { id: known.id }, data: { ...data, region, credentials } });
}

/** Removes a destination whose probe failed or never began. Does nothing to an active destination. */
export async function dropPending(tx: Tx, destinationId: string): Promise<void> {
  await tx.offsiteDestination.deleteMany({ where: { id: destinationId, state: 'pending' } });
}

/**
 * Marks the site's active destination as removed, and deletes its credentials. The rows of the copies stay. Resolves
 * with false if the site has no active destination.
 */
export async function removeActive(tx: Tx, siteId: string): Promise<boolean> {
  const { count } = await tx.offsiteDestination.updateMany({
    where: { siteId, state: 'active' },
    data: { state: 'removed', credentials: null },
  });
  return count > 0;
}

/** Lists the sealed credentials of all customers, ordered by the id of the destination. Opens none of them. */
export async function listSealed(tx: Reader, afterId: string, take: number) {
  const rows = await tx.offsiteDestination.findMany({
    where: { id: { gt: afterId }, credentials: { not: null } },
    orderBy: { id: 'asc' },
    take,
    select: { id: true, siteId: true, endpoint: true, bucket: true, prefix: true, credentials: true },
  });
  return rows.map(({ credentials, ...row }) => ({ ...row, sealed: Buffer.from(credentials ?? '') }));
}

/** Resolves with the number of changed rows: 0 if the credentials have changed since they were read, otherwise 1. */
export async function replaceCredentials(
  tx: Reader,
  id: string,
  { sealed, renewed }: { sealed: Buffer; renewed: Buffer },
): Promise<number> {
  const where = { id, credentials: new Uint8Array(sealed) };
  const { count } = await tx.offsiteDestination.updateMany({ where, data: { credentials: new Uint8Array(renewed) } });
  return count;
}

/** `lastErrorCode` is '' after a success. */
export async function recordOutcome(tx: Tx, destinationId: string, lastErrorCode: string): Promise<void> {
  await tx.offsiteDestination.updateMany({ where: { id: destinationId }, data: { lastErrorCode } });
}

/**
 * Removes the destinations of a purged site, with their credentials and the rows of their copies. The objects in the
 * customer's storage stay.
 */
export async function forgetDestinations(tx: Tx, siteId: string): Promise<void> {
  await tx.offsiteDestination.deleteMany({ where: { siteId } });
}

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
    streamBytes: row.streamBytes === null ? null : Number(row.streamBytes),
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

/**
 * The copies at a destination, newest first, apart from the failed ones. No copy depends on a failed one. The rows of
 * failed copies stay for ever, so loading them would make every request slower with time.
 */
export async function listCopies(tx: Reader, { id, siteId, orgId, mode }: Destination): Promise<Copy[]> {
  const rows = await tx.offsiteCopy.findMany({
    where: { destinationId: id, siteId, orgId, mode, status: { not: 'failed' } },
    orderBy: { id: 'desc' },
  });
  return rows.map(toCopy);
}

/**
 * Lists completed and failed copies at a destination, newest first, up to `take` of them. With `after` only those older
 * than the copy `after`.
 */
export async function listFinished(
  tx: Reader,
  { id, siteId, orgId, mode }: Destination,
  { after, take }: { after: string | null; take: number },
): Promise<Copy[]> {
  const rows = await tx.offsiteCopy.findMany({
    where: {
      destinationId: id,
      siteId,
      orgId,
      mode,
      status: { not: 'running' },
      ...(after === null ? {} : { id: { lt: after } }),
    },
    orderBy: { id: 'desc' },
    take,
  });
  return rows.map(toCopy);
}

/** The site's copy with this id, at any of its destinations. Null if there is none. */
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

/** Inserts a running copy with the next sequence number of its site. A repeated call inserts no second row. */
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
  found: { streamBytes: number; skipped: SkippedSummary; answer: RecordedAnswer },
  at: Date,
): Promise<void> {
  const { streamBytes, skipped, answer } = found;
  const sample = skipped.sample.map((path) => ({ ...storable(path) }));
  const told = { count: skipped.count, sample };
  const data = {
    status: 'completed' as const,
    ...archive,
    streamBytes,
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

/** Marks a running copy as failed. Any other copy stays as it is. */
export async function markCopyFailed(tx: Tx, copyId: string, errorCode: string): Promise<void> {
  await tx.offsiteCopy.updateMany({ where: { id: copyId, status: 'running' }, data: { status: 'failed', errorCode } });
}

/** The caller has read every byte of the copies and compared every MAC. */
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

/** The site's newest workflow of this kind. Null if there was none. */
export async function findLastWorkflow(
  tx: Reader,
  { id: subjectId, orgId, mode }: OwnedSite,
  kind: string,
): Promise<{ id: string; input: unknown } | null> {
  return tx.workflow.findFirst({
    where: { kind, subjectType: 'site', subjectId, orgId, mode },
    orderBy: { id: 'desc' },
    select: { id: true, input: true },
  });
}
