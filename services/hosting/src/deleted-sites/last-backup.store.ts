import type { Reader, Tx } from '../database.store';

/**
 * The last backup of a deletion that was given up after the site's destruction had begun, recognised by having no
 * expiry. Null without one.
 */
export async function findLeftBackup(tx: Reader, siteId: string): Promise<string | null> {
  const row = await tx.backup.findFirst({
    where: { siteId, status: 'completed', expiresAt: null },
    orderBy: { id: 'desc' },
    select: { id: true },
  });
  return row?.id ?? null;
}

/** The newest completed backup of the site that has not expired; null without one. */
export async function findNewestBackup(tx: Reader, siteId: string, now: Date): Promise<string | null> {
  const row = await tx.backup.findFirst({
    where: { siteId, status: 'completed', expiresAt: { gt: now } },
    orderBy: { id: 'desc' },
    select: { id: true },
  });
  return row?.id ?? null;
}

/** Removes the backup's expiry: the deleted site that needs it decides from here on. */
export async function keepBackup(tx: Tx, backupId: string): Promise<void> {
  await tx.backup.updateMany({ where: { id: backupId, status: 'completed' }, data: { expiresAt: null } });
}
