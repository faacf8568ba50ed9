import type { Reader, Tx } from '../database.store';
import type { OffsiteDestination as DestinationRow } from '../generated/prisma/client';
import type { Owner } from '../sites/site.types';
import type { Destination } from './offsite.types';

function toDestination({ credentials, createdAt: _createdAt, state: _state, ...row }: DestinationRow): Destination {
  return { ...row, sealedCredentials: credentials === null ? null : Buffer.from(credentials) };
}

type OwnedSite = Owner & { id: string };

/** Where the site's copies go; null when nothing is configured. */
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

export type NewDestination = Omit<Destination, 'encryptionKeyId' | 'lastErrorCode' | 'sealedCredentials'> & { sealedCredentials: Buffer };

/** A place that has yet to be tried. */
export async function insertPending(tx: Tx, { sealedCredentials, ...destination }: NewDestination): Promise<void> {
  await tx.offsiteDestination.create({ data: { ...destination, state: 'pending', credentials: new Uint8Array(sealedCredentials) } });
}

/**
 * The pending place becomes the site's only one. A place that the site had before (the same bucket and prefix) takes over its credentials
 * instead, and with that its copies are known again.
 */
export async function activate(tx: Tx, destinationId: string, encryptionKeyId: string): Promise<void> {
  const pending = await tx.offsiteDestination.findUnique({ where: { id: destinationId } });
  if (pending === null || pending.state !== 'pending') return;
  const { siteId, endpoint, bucket, prefix, region, credentials } = pending;
  await tx.offsiteDestination.updateMany({ where: { siteId, state: 'active' }, data: { state: 'removed', credentials: null } });
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

/** A place that was tried and failed leaves nothing, its credentials least of all. */
export async function dropPending(tx: Tx, destinationId: string): Promise<void> {
  await tx.offsiteDestination.deleteMany({ where: { id: destinationId, state: 'pending' } });
}

/** Forgets the credentials; the copies that are known stay known. */
export async function removeActive(tx: Tx, siteId: string): Promise<boolean> {
  const { count } = await tx.offsiteDestination.updateMany({
    where: { siteId, state: 'active' },
    data: { state: 'removed', credentials: null },
  });
  return count > 0;
}

/** Credentials of all customers, by the id: for sealing them anew, which looks at none of them. */
export async function listSealed(tx: Reader, afterId: string, take: number) {
  const rows = await tx.offsiteDestination.findMany({
    where: { id: { gt: afterId }, credentials: { not: null } },
    orderBy: { id: 'asc' },
    take,
    select: { id: true, siteId: true, endpoint: true, bucket: true, prefix: true, credentials: true },
  });
  return rows.map(({ credentials, ...row }) => ({ ...row, sealed: Buffer.from(credentials ?? '') }));
}

/** Resolves with 0 when somebody has changed or removed them meanwhile. */
export async function replaceCredentials(
  tx: Reader,
  id: string,
  { sealed, renewed }: { sealed: Buffer; renewed: Buffer },
): Promise<number> {
  const where = { id, credentials: new Uint8Array(sealed) };
  const { count } = await tx.offsiteDestination.updateMany({ where, data: { credentials: new Uint8Array(renewed) } });
  return count;
}

/** '' after something that succeeded. */
export async function recordOutcome(tx: Tx, destinationId: string, lastErrorCode: string): Promise<void> {
  await tx.offsiteDestination.updateMany({ where: { id: destinationId }, data: { lastErrorCode } });
}

/** Nothing brings the site back: credentials and what was known of its copies go. What lies in the customer's storage is the customer's. */
export async function forgetDestinations(tx: Tx, siteId: string): Promise<void> {
  await tx.offsiteDestination.deleteMany({ where: { siteId } });
}
