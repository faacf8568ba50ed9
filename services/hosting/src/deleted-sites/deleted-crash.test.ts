import type { WorkflowView } from '@drydock/contracts/workflows';
import { type CrashFixture, type CrashLook, crashEveryStep } from '@drydock/test-kit/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/test-kit/crash-scope';
import { givenDeletedSite } from '../../test/deleted-site';
import { callerOf } from '../../test/hosting-api';
import { type HostingWorld, leaseSeconds, makeSite, openWorld, succeed } from '../../test/hosting-world';
import { fillSite, type SiteState, stateOf } from '../../test/site-state';
import { type HostingDatabase, openDatabase } from '../database.store';
import type { WorkContext } from '../sites/work';
import { purgeDeletedSitesWorkflow } from './purge-deleted-sites.workflow';
import { restoreDeletedSiteWorkflow } from './restore-deleted-site.workflow';
import { staffActions } from './staff-actions';

interface Run {
  workflowId: string;
  id: string;
  siteId: string;
}

const scope = crashScope({ delicate: ['switch', 'provision', 'remove'] });
/** Only names, undos and the point of no return are asked of these; the worker processes build their own. */
const noContext = Object.freeze({}) as WorkContext;

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

  const unfinishedOf = async (key: string) =>
    (await world.api.rows("SELECT 1 FROM workflow WHERE resource_key = $1 AND status IN ('queued', 'running', 'needs_attention')", [key]))
      .length;
  const auditRows = async (workflowId: string) =>
    (await world.api.rows('SELECT 1 FROM audit_outbox WHERE workflow_id = $1', [workflowId])).length;
  const fixture = (key: (run: Run) => string, view: (run: Run) => Promise<Pick<WorkflowView, 'status' | 'steps'>>) =>
    ({
      leaseSeconds,
      spawnWorker: (more: { DRYDOCK_FAULTS: string }) => world.spawnWorker({ ...more }),
      look: async (run: Run): Promise<CrashLook> => {
        const { status, steps } = await view(run);
        return { status, steps, unfinished: await unfinishedOf(key(run)), auditRows: await auditRows(run.workflowId) };
      },
      ledger: async () => world.ledger(),
    }) satisfies Partial<CrashFixture<Run>>;
  const record = async (id: string) => {
    const [row] = await world.api.rows<{ restored: boolean; purged: boolean; removed: boolean }>(
      `SELECT restored_at IS NOT NULL AS restored, purged_at IS NOT NULL AS purged, data_removed_at IS NOT NULL AS removed FROM deleted_sites WHERE id = $1`,
      [id],
    );
    return row ?? { restored: false, purged: false, removed: false };
  };
  const isHosted = (siteId: string): Promise<boolean> =>
    world.host.readSite(siteId).then(
      () => true,
      () => false,
    );

  it(
    'restore_deleted_site',
    async () => {
      const states = new Map<string, SiteState>();
      const makeDeleted = async (): Promise<{ id: string; siteId: string }> => {
        const siteId = await makeSite(world);
        await fillSite(world, siteId, 1);
        states.set(siteId, await stateOf(world, siteId));
        await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
        const [row] = await world.api.rows<{ id: string }>('SELECT id FROM deleted_sites WHERE site_id = $1', [siteId]);
        return { siteId, id: row?.id ?? '' };
      };
      const view = async ({ id, workflowId }: Run) =>
        (await world.api.call('GET', `/v1/sites/deleted/${id}/workflows/${workflowId}`)).json as WorkflowView;
      const { cases } = await crashEveryStep(
        restoreDeletedSiteWorkflow(noContext),
        {
          ...fixture(({ siteId }) => `site:${siteId}`, view),
          start: async () => {
            const made = await makeDeleted();
            const answer = await world.api.call('POST', `/v1/sites/deleted/${made.id}/restore`);
            if (answer.status !== 202) throw new Error(answer.text);
            return { ...made, workflowId: String(answer.headers['location']).split('/').at(-1) ?? '' };
          },
          judge: async ({ id, siteId }) => {
            const site = (await world.api.call('GET', `/v1/sites/${siteId}`)).json as { status: string | number };
            const found = `${site.status} ${await isHosted(siteId)} ${(await record(id)).restored}`;
            if (found === '404 false false') return 'old';
            if (found !== 'active true true') throw new Error(found);
            const [now, before] = [await stateOf(world, siteId), states.get(siteId)];
            if (now.page !== before?.page || now.tree !== before.tree || now.database !== before.database) throw new Error('another site');
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
      const view = async ({ workflowId }: Run) => {
        const [row] = await world.api.rows<{ status: string }>('SELECT status FROM workflow WHERE id = $1', [workflowId]);
        const steps = await world.api.rows<WorkflowView['steps'][number]>(
          'SELECT name, status, attempts FROM workflow_step WHERE workflow_id = $1 ORDER BY position',
          [workflowId],
        );
        return { status: row?.status as WorkflowView['status'], steps };
      };
      const { cases } = await crashEveryStep(
        purgeDeletedSitesWorkflow(noContext),
        {
          ...fixture(({ id }) => `purge_deleted_site:${id}`, view),
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
