import type { Reader, Tx } from '../context/database.store';
import type { OffsiteDestination as DestinationRow } from '../generated/prisma/client';
import type { Destination } from '../providers/offsite-place.types';
import type { Owner } from '../sites/site.types';

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

/** A destination by its id, if it is the site's and still has its credentials. */
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
 * Makes the pending destination the site's only one. If the site had the same bucket and prefix before, that row gets
 * the new credentials instead, so that its copies are known again.
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

/** Removes a destination whose probe failed, with its credentials. */
export async function dropPending(tx: Tx, destinationId: string): Promise<void> {
  await tx.offsiteDestination.deleteMany({ where: { id: destinationId, state: 'pending' } });
}

/** Removes the credentials; the copies stay on record. */
export async function removeActive(tx: Tx, siteId: string): Promise<boolean> {
  const { count } = await tx.offsiteDestination.updateMany({
    where: { siteId, state: 'active' },
    data: { state: 'removed', credentials: null },
  });
  return count > 0;
}

/** The sealed credentials of all customers, by id, to seal them anew. They are not opened for it. */
export async function listSealed(tx: Reader, afterId: string, take: number) {
  const rows = await tx.offsiteDestination.findMany({
    where: { id: { gt: afterId }, credentials: { not: null } },
    orderBy: { id: 'asc' },
    take,
    select: { id: true, siteId: true, endpoint: true, bucket: true, prefix: true, credentials: true },
  });
  return rows.map(({ credentials, ...row }) => ({ ...row, sealed: Buffer.from(credentials ?? '') }));
}

/** Resolves with 0 if somebody has changed or removed them meanwhile. */
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
 * Forgets the destinations of a site that can never be restored: their credentials and the record of its copies. The
 * copies in the customer's storage are the customer's.
 */
export async function forgetDestinations(tx: Tx, siteId: string): Promise<void> {
  await tx.offsiteDestination.deleteMany({ where: { siteId } });
}
