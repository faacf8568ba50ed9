/**
 * Kills a worker in each step of a deleted site's restore and purge.
 *
 * @tier long
 * @processes
 */
import { auditRowsOf } from '@drydock/service/testing/audit-log';
import { crashEveryStepInWorld } from '@drydock/service/testing/crash-in-world';
import { succeed, viewOf, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashLook } from '@drydock/testing/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { lookAtRecord } from '@drydock/workflow/testing/workflow-record';
import { deletionOf, givenDeletedSite } from '../../test/deleted-site';
import { type HostingWorld, makeSite, openWorld } from '../../test/hosting-world';
import { isHosted, type SiteRun } from '../../test/site-run';
import { fillSite, type SiteState, stateOf } from '../../test/site-state';
import { type HostingDatabase, openDatabase } from '../context/database.store';
import { purgeDeletedSitesWorkflow } from './purge-deleted-sites.workflow';
import { restoreDeletedSiteWorkflow } from './restore-deleted-site.workflow';
import { staffActions } from './staff-actions';

interface Run extends SiteRun {
  id: string;
}

const scope = crashScope({ delicate: ['switch', 'provision', 'remove'] });

describe('every step of bringing a site back, and of its purge, survives its crash', () => {
  let world: HostingWorld;
  let database: HostingDatabase;
  beforeAll(async () => {
    world = await openWorld(crashBackends()[0] ?? 'postgres', callerOf());
    database = openDatabase(world.api.postgres.url, { max: 1, applicationName: 'test' });
  });
  afterAll(async () => {
    await database.close();
    await world.close();
  });

  const look = async ({ workflowId }: Run): Promise<CrashLook> => ({
    ...(await lookAtRecord(world.api, workflowId)),
    auditRows: await auditRowsOf(world.api, workflowId),
  });
  const ledger = async () => world.ledger();
  const record = async (id: string) => {
    const [row] = await world.api.rows<{ restored: boolean; purged: boolean; removed: boolean }>(
      `SELECT restored_at IS NOT NULL AS restored, purged_at IS NOT NULL AS purged, data_removed_at IS NOT NULL AS removed FROM deleted_sites WHERE id = $1`,
      [id],
    );
    return row ?? { restored: false, purged: false, removed: false };
  };

  it(
    'restore_deleted_site',
    async () => {
      const states = new Map<string, SiteState>();
      const makeDeleted = async (): Promise<{ id: string; siteId: string }> => {
        const siteId = await makeSite(world);
        await fillSite(world, siteId, 1);
        states.set(siteId, await stateOf(world, siteId));
        await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
        return { siteId, id: await deletionOf(world.api, siteId) };
      };
      /** Reads the workflow under the path of the deleted site, as its owner does. */
      const lookAtView = async (run: Run): Promise<CrashLook> => {
        const { status, steps } = await viewOf(world, `/v1/sites/deleted/${run.id}/workflows/${run.workflowId}`);
        return { ...(await look(run)), status, steps };
      };
      const { cases } = await crashEveryStepInWorld(
        world,
        restoreDeletedSiteWorkflow,
        {
          ledger,
          look: lookAtView,
          start: async () => {
            const made = await makeDeleted();
            const answer = await world.api.call('POST', `/v1/sites/deleted/${made.id}/restore`);
            if (answer.status !== 202) throw new Error(answer.text);
            return { ...made, workflowId: workflowIdOf(answer) };
          },
          judge: async ({ id, siteId }) => {
            const site = (await world.api.call('GET', `/v1/sites/${siteId}`)).json as { status: string | number };
            const found = `${site.status} ${await isHosted(world, siteId)} ${(await record(id)).restored}`;
            if (found === '404 false false') return 'old';
            if (found !== 'active true true') throw new Error(found);
            const [now, before] = [await stateOf(world, siteId), states.get(siteId)];
            if (now.page !== before?.page || now.tree !== before.tree || now.database !== before.database)
              throw new Error('another site');
            return 'new';
          },
        },
        scope,
      );
      expect(cases.length).toBeGreaterThan(8);
    },
    crashLimitMs,
  );

  it(
    'purge_deleted_sites',
    async () => {
      const { cases } = await crashEveryStepInWorld(
        world,
        purgeDeletedSitesWorkflow,
        {
          ledger,
          look,
          start: async () => {
            const { id, siteId } = await givenDeletedSite(world.api, world.backupsDir, world.caller);
            return { id, siteId, workflowId: await staffActions(database).purge(id) };
          },
          judge: async ({ id }) => {
            const { purged, removed } = await record(id);
            if (purged === removed) return purged ? 'new' : 'old';
            throw new Error('purged, and its data is still there');
          },
        },
        scope,
      );
      expect(cases.length).toBeGreaterThan(4);
    },
    crashLimitMs,
  );
});
