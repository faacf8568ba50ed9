import type { Sql } from '@drydock/service/database/sql';
import { saveSchedule } from '@drydock/workflow/store/schedules';
import { platformOrgId } from '../retention/platform-work';

/** Purges run every hour in each mode; the relay starts them, even if the queue is lost. */
const intervalSeconds = 3_600;

export async function schedulePurges(sql: Sql): Promise<void> {
  for (const mode of ['live', 'sandbox'] as const) {
    const name = `purge_deleted_sites:${mode}`;
    await saveSchedule(sql, {
      name,
      kind: 'purge_deleted_sites',
      resourceKey: name,
      subject: { type: 'platform', id: 'deleted-sites' },
      orgId: platformOrgId,
      mode,
      input: { deletedSiteId: null },
      interval: { intervalSeconds },
    });
  }
}
