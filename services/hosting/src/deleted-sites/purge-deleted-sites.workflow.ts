import { z } from 'zod';
import { defineWorkflow } from '../sites/work';
import { isPurged } from './deleted-site.rules';
import type { DeletedSite } from './deleted-site.types';
import { findRecord, listToRemove, listUnpurged, markPurged, purgePageSize } from './purge.store';
import { removeData } from './remove-data';

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
 * Marks each site first, so that it cannot be restored any more, and then removes its data: after a kill in between,
 * the next run removes it.
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
