import type { StepContext } from '@drydock/workflow/definition/definition';
import { forgetDestinations } from '../offsite/destination.store';
import type { WorkContext } from '../sites/work';
import type { DeletedSite } from './deleted-site.types';
import { listBackupFolders, recordRemoved } from './purge.store';

/**
 * Removes every archive of a purged site, and the leftovers of failed attempts. Data that the storage does not release
 * yet (a lock that still holds, an outage) is left to the next purge, and does not keep other sites from being purged.
 */
export async function removeData(
  context: WorkContext,
  step: StepContext<unknown, unknown>,
  record: DeletedSite,
): Promise<void> {
  const { database, backupStorage, now } = context;
  step.signal.throwIfAborted();
  let lockedObjects = 0;
  try {
    for (const folder of await listBackupFolders(database.pool, record.siteId)) {
      const removal = await backupStorage.removeAll(folder);
      lockedObjects += removal.lockedObjects;
    }
  } catch (error) {
    step.log.warn({ err: error, deleted_site_id: record.id }, 'the data of a purged site could not be removed');
    return;
  }
  if (lockedObjects > 0)
    step.log.info(
      { deleted_site_id: record.id, locked_objects: lockedObjects },
      'a lock still holds data of a purged site',
    );
  else
    await database.transaction(async (tx) => {
      await recordRemoved(tx, record, now());
      await forgetDestinations(tx, record.siteId);
    });
}
