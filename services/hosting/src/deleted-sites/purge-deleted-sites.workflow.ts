import type { StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { defineWorkflow, type WorkContext } from '../context/context';
import { forgetDestinations } from '../offsite/offsite.store';
import { type DeletedSite, isPurged } from './deleted-site.rules';
import {
  findRecord,
  listBackupFolders,
  listToRemove,
  listUnpurged,
  markPurged,
  purgePageSize,
  recordRemoved,
} from './deleted-site.store';

/**
 * Removes every archive of a purged site, and the leftovers of failed attempts. Data that is still locked, or that the
 * storage does not remove now, is left to the next purge, so that other sites are not held up.
 */
async function removeData(
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

type ListPage = (after: string | null) => Promise<DeletedSite[]>;

async function* pagesOf(list: ListPage): AsyncGenerator<DeletedSite[]> {
  for (let after: string | null = null; ; ) {
    const page = await list(after);
    yield page;
    after = page.at(-1)?.id ?? null;
    if (page.length < purgePageSize) return;
  }
}

/**
 * Marks sites as purged, so that they cannot be restored any more, and then removes their data. Takes every site that
 * is due, or only the site in the input. Data that a run does not remove is left to the next run.
 */
export const purgeDeletedSitesWorkflow = defineWorkflow({
  kind: 'purge_deleted_sites',
  input: z.strictObject({ deletedSiteId: z.uuid().nullable() }),
})
  .step('close', {
    run: async (step, context) => {
      const { pool } = context.database;
      const { deletedSiteId } = step.input;
      if (deletedSiteId !== null) return { ids: [deletedSiteId], closedAt: context.now().toISOString() };
      const ids: string[] = [];
      for await (const page of pagesOf((after) => listUnpurged(pool, step.mode, after))) {
        ids.push(
          ...page.filter((record) => record.purgedAt === null && isPurged(record, context.now())).map(({ id }) => id),
        );
      }
      return { ids, closedAt: context.now().toISOString() };
    },
    commit: (tx, _step, { ids, closedAt }) => markPurged(tx, ids, new Date(closedAt)),
  })
  .pointOfNoReturn()
  .step('remove', {
    timeoutSeconds: 3_600,
    attemptsMax: 8,
    run: async (step, context) => {
      const { pool } = context.database;
      const { deletedSiteId } = step.input;
      if (deletedSiteId !== null) {
        const record = await findRecord(pool, deletedSiteId);
        if (record?.purgedAt != null && record.dataRemovedAt === null) await removeData(context, step, record);
        return;
      }
      for await (const page of pagesOf((after) => listToRemove(pool, step.mode, after))) {
        for (const record of page) await removeData(context, step, record);
      }
    },
  })
  .build();
