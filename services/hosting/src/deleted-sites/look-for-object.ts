import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import { findBackup } from '../backups/backup.store';
import type { Backup } from '../backups/backup.types';
import type { HandlerContext } from '../context';
import { needsObject } from './deleted-site.rules';
import type { DeletedSite } from './deleted-site.types';
import { isStaff } from './find-deleted-site';

interface LastBackup {
  backup: Backup | null;
  /** Whether its object was found in the storage just now. */
  hasObject: boolean;
}

/** The caller of the request: staff may see and restore records that a customer may not. */
export interface Asking {
  caller: Caller;
  now: Date;
}

/**
 * Asks the storage itself for the record's last backup, if the answer matters. Throws 503 if the storage cannot be
 * asked.
 */
export async function lookForObject(
  { database, backupStorage }: Pick<HandlerContext, 'database' | 'backupStorage'>,
  record: DeletedSite,
  { caller, now }: Asking,
): Promise<LastBackup> {
  if (record.backupId === null || !needsObject({ record, isStaff: isStaff(caller) }, now))
    return { backup: null, hasObject: false };
  const backup = await findBackup(database.pool, { ...record, id: record.siteId }, record.backupId);
  if (backup?.archive == null || backup.status !== 'completed') return { backup, hasObject: false };
  const hasObject = await backupStorage.has(backup.archive.storageKey).catch((error: unknown) => {
    throw problem('dependency_unavailable', {
      extra: { dependency: 'backup-storage' },
      retryAfterSeconds: 5,
      cause: error,
    });
  });
  return { backup, hasObject };
}
