import type { EventType } from '@drydock/contracts/keys/events';
import { audit } from '@drydock/service/effects';
import { startWorkflow } from '@drydock/workflow/store';
import type { HostingDatabase } from '../context/database.store';
import { type DeletedSite, deletedSitePath } from './deleted-site.rules';
import { findRecord, setReason } from './deleted-site.store';
import { purgeDeletedSitesWorkflow } from './purge-deleted-sites.workflow';

/** Actions of staff on a deleted site. Only `command.ts` offers them, not the public API. */
export interface StaffActions {
  /**
   * From now on only staff can restore the site. Throws if there is no such record, or if its site was restored or
   * purged.
   */
  hold(deletedSiteId: string): Promise<void>;
  /** The customer can restore the site again. Throws like `hold`. */
  release(deletedSiteId: string): Promise<void>;
  /**
   * Has a worker remove the data of the site now, before `purgeDueAt`. Resolves with the id of the workflow. Throws
   * like `hold`.
   */
  purge(deletedSiteId: string): Promise<string>;
}

export function staffActions(database: HostingDatabase): StaffActions {
  const entryOf = ({ orgId, mode, id }: DeletedSite) => ({
    orgId,
    mode,
    actorKeyId: null,
    target: deletedSitePath(id),
  });
  const change = (id: string, reason: DeletedSite['reason'], action: EventType): Promise<void> =>
    database.transaction(async (tx) => {
      const record = await setReason(tx, id, reason);
      if (record === null) throw new Error(`${id} is no deleted site that waits to be brought back`);
      await audit(database.sql(tx), { ...entryOf(record), action, workflowId: null });
    });
  return {
    hold: (id) => change(id, 'abuse', 'deleted_site.hold'),
    release: (id) => change(id, 'customer', 'deleted_site.release'),
    purge: (id) =>
      database.transaction(async (tx) => {
        const record = await findRecord(tx, id);
        if (record === null || record.restoredAt !== null || record.purgedAt !== null) {
          throw new Error(`${id} is no deleted site that waits to be brought back`);
        }
        const { actorKeyId, target } = entryOf(record);
        const { workflowId } = await startWorkflow(database.sql(tx), {
          kind: purgeDeletedSitesWorkflow.kind,
          definition: purgeDeletedSitesWorkflow,
          resourceKey: `purge_deleted_site:${id}`,
          subject: { type: 'platform', id: 'deleted-sites' },
          orgId: record.orgId,
          mode: record.mode,
          input: { deletedSiteId: id },
          actorKeyId,
          requestId: 'staff-command',
          audit: { action: 'deleted_site.purge', target },
        });
        return workflowId;
      }),
  };
}
