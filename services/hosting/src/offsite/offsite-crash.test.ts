import { existsSync } from 'node:fs';
import path from 'node:path';
import type { WorkflowView } from '@drydock/contracts/workflows';
import { type CrashFixture, type CrashLook, crashEveryStep } from '@drydock/test-kit/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/test-kit/crash-scope';
import { until } from '@drydock/test-kit/wait';
import { callerOf } from '../../test/hosting-api';
import { leaseSeconds, makeSite } from '../../test/hosting-world';
import { type OffsiteWorld, openOffsiteWorld } from '../../test/offsite-world';
import { fillSite, type SiteState, stateOf } from '../../test/site-state';
import type { WorkContext } from '../sites/work';
import { configureOffsiteWorkflow } from './configure-offsite.workflow';
import { copyOffsiteWorkflow } from './copy-offsite.workflow';
import { restoreOffsiteWorkflow } from './restore-offsite.workflow';

interface Run {
  workflowId: string;
  siteId: string;
}

const scope = crashScope({ delicate: ['fetch', 'pack'] });
/** From the freeze on it is a restore like any other, which is crashed at every step itself. */
const restoreScope = crashScope({ onlyInCi: /^kill at .*\.(?:fetch|verify|stage|switch|clear)\.|^stop at .*\.fetch\./ });
/** Only names, undos and the point of no return are asked of these; the worker processes build their own. */
const noContext = Object.freeze({}) as WorkContext;

describe.each(crashBackends())('every step of the work on a customer’s storage survives its crash, with the queue on %s', (backend) => {
  let world: OffsiteWorld;
  beforeAll(async () => {
    world = await openOffsiteWorld(backend, callerOf());
  });
  afterAll(() => world.close());

  const begin = async (siteId: string, kind: string, method: string, rest: string, body: object): Promise<Run> => {
    void world.api.call(method, `/v1/sites/${siteId}/offsite${rest}`, { body }).catch(() => undefined);
    const sql = 'SELECT id FROM workflow WHERE subject_id = $1 AND kind = $2 ORDER BY id DESC';
    const { id } = await until(async () => (await world.api.rows<{ id: string }>(sql, [siteId, kind]))[0], { what: `a ${kind}` });
    return { siteId, workflowId: id };
  };
  const look = async ({ workflowId, siteId }: Run): Promise<CrashLook> => {
    const { status, steps } = (await world.api.call('GET', `/v1/sites/${siteId}/workflows/${workflowId}`)).json as WorkflowView;
    const sql = "SELECT 1 FROM workflow WHERE subject_id = $1 AND status IN ('queued', 'running', 'needs_attention')";
    const audited = await world.api.rows('SELECT 1 FROM audit_outbox WHERE workflow_id = $1', [workflowId]);
    return { status, steps, unfinished: (await world.api.rows(sql, [siteId])).length, auditRows: audited.length };
  };
  const fixture = (own: Pick<CrashFixture<Run>, 'start' | 'judge'>): CrashFixture<Run> => ({
    leaseSeconds,
    spawnWorker: (more) => world.spawnWorker({ ...more }),
    look,
    ledger: async () => world.ledger(),
    ...own,
  });
  /** What lies in the customer's bucket of a site, by attempt. */
  const attemptsOf = (siteId: string): Set<string> => new Set(world.keys(`${siteId}/`).map((key) => path.dirname(key)));

  it(
    'configure_offsite',
    async () => {
      const { cases } = await crashEveryStep(
        configureOffsiteWorkflow(noContext),
        fixture({
          start: async () => begin(await makeSite(world), 'configure_offsite', 'PUT', '', world.place()),
          judge: async ({ siteId }) => {
            const rows = await world.api.rows<{ state: string }>('SELECT state FROM offsite_destinations WHERE site_id = $1', [siteId]);
            const found = rows.map(({ state }) => state).join();
            if (world.keys('drydock-probe').length > 0) throw new Error('a probe was left in the bucket');
            if (found === 'active') return 'new';
            if (found === '') return 'old';
            throw new Error(found);
          },
        }),
        scope,
      );
      expect(cases.length).toBeGreaterThan(1);
    },
    crashLimitMs,
  );

  it(
    'copy_offsite',
    async () => {
      const { cases } = await crashEveryStep(
        copyOffsiteWorkflow(noContext),
        fixture({
          start: async () => {
            const siteId = await makeSite(world);
            await world.configure(siteId);
            return begin(siteId, 'copy_offsite', 'POST', '/copies', { kind: 'full' });
          },
          judge: async ({ siteId }) => {
            const [copy] = (await world.stateOf(siteId)).copies;
            const attempts = attemptsOf(siteId).size;
            if (copy?.status === 'completed' && attempts === 1) return 'new';
            if (copy?.status === 'failed' && attempts === 0) return 'old';
            throw new Error(`${copy?.status} with ${attempts} attempts in the bucket`);
          },
        }),
        scope,
      );
      expect(cases.length).toBeGreaterThan(3);
    },
    crashLimitMs,
  );

  it(
    'restore_offsite',
    async () => {
      const states = new Map<string, { old: SiteState; wanted: SiteState }>();
      const { cases } = await crashEveryStep(
        restoreOffsiteWorkflow(noContext),
        fixture({
          start: async () => {
            const siteId = await makeSite(world);
            await fillSite(world, siteId, 1);
            await world.configure(siteId);
            await world.copy(siteId, 'full');
            await fillSite(world, siteId, 2);
            const wanted = await stateOf(world, siteId);
            const copyId = await world.copy(siteId, 'incremental');
            await fillSite(world, siteId, 3);
            states.set(siteId, { wanted, old: await stateOf(world, siteId) });
            return begin(siteId, 'restore_offsite', 'POST', '/restore', { copy_id: copyId });
          },
          judge: async ({ siteId, workflowId }) => {
            const state = JSON.stringify(await stateOf(world, siteId));
            const known = states.get(siteId);
            if (existsSync(path.join(world.spoolDir, workflowId))) throw new Error('what was fetched was left on our disk');
            if (state === JSON.stringify(known?.wanted)) return 'new';
            if (state === JSON.stringify(known?.old)) return 'old';
            throw new Error(`neither the one nor the other: ${state}`);
          },
        }),
        restoreScope,
      );
      expect(cases.length).toBeGreaterThan(4);
    },
    crashLimitMs,
  );
});
