import type { Reader, Tx } from '../database.store';

/** The last backup of a deletion that was given up after the site's destruction had begun: only those have no end. Null without one. */
export async function findLeftBackup(tx: Reader, siteId: string): Promise<string | null> {
  const row = await tx.backup.findFirst({
    where: { siteId, status: 'completed', expiresAt: null },
    orderBy: { id: 'desc' },
    select: { id: true },
  });
  return row?.id ?? null;
}

/** The newest completed backup of the site whose time is not over; null without one. */
export async function findNewestBackup(tx: Reader, siteId: string, now: Date): Promise<string | null> {
  const row = await tx.backup.findFirst({
    where: { siteId, status: 'completed', expiresAt: { gt: now } },
    orderBy: { id: 'desc' },
    select: { id: true },
  });
  return row?.id ?? null;
}

/** It has no end of its own from here on: the deleted site that needs it decides. */
export async function keepBackup(tx: Tx, backupId: string): Promise<void> {
  await tx.backup.updateMany({ where: { id: backupId, status: 'completed' }, data: { expiresAt: null } });
}
