/**
 * Kills a worker in each step of a request to the vendor.
 *
 * @tier long
 * @processes
 */
import { crashEveryStepInWorld } from '@drydock/service/testing/crash-in-world';
import { callerOf } from '@drydock/service/testing/service-api';
import { providerEntries } from '@drydock/testing/ledger';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { awaitedWorkflowOf } from '@drydock/workflow/testing/workflow-record';
import { lookAtRun, type SiteRun } from '../../test/site-run';
import { vendorContent } from '../../test/vendor';
import {
  auditOf,
  donesOf,
  makeVendorSite,
  openVendorWorld,
  snapshotsPath,
  surfaceOf,
  type VendorWorld,
} from '../../test/vendor-world';
import { vendorRestoreWorkflow } from './vendor-restore.workflow';
import { vendorTakeSnapshotWorkflow } from './vendor-take-snapshot.workflow';

interface Run extends SiteRun {
  packageId: string;
}

// Cases in which three workers die are left out. A request stops waiting before three workers are replaced, and then
// nothing is sent to the vendor.
const scope = crashScope({ delicate: ['send'], never: / 3 times /, isHasty: true });

describe('every step of an order to the vendor survives its crash', () => {
  let world: VendorWorld;
  const backend = crashBackends()[0] ?? 'postgres';
  beforeAll(async () => {
    world = await openVendorWorld(backend, callerOf(), { VENDOR_WATCH_MS: '10000' });
  });
  afterAll(() => world.close());

  /**
   * Starts the work. The HTTP request waits for the vendor and may be refused, so the workflow is found in the
   * database.
   */
  const begin = async (kind: string, rest: string, bodyOf: (siteId: string) => Promise<object>): Promise<Run> => {
    const site = await makeVendorSite(world);
    void world.api
      .call('POST', `${snapshotsPath(site.siteId)}${rest}`, { body: await bodyOf(site.siteId) })
      .catch(() => undefined);
    return { ...site, workflowId: await awaitedWorkflowOf(world.api, site.siteId, kind) };
  };
  const look = (run: Run) => lookAtRun(world, run);
  const ledger = async () => providerEntries(await world.vendor.ledger());
  /**
   * Resolves with the number of requests that the vendor has carried out. Throws if there are several. If the step
   * `send` has succeeded, there must be one audit entry, otherwise none.
   */
  const judgeOrders = async ({ siteId, packageId, workflowId }: Run, op: string, action: string): Promise<number> => {
    const orders = (await donesOf(world, packageId)).filter((done) => done === op).length;
    const [step] = await world.api.rows<{ status: string }>(
      "SELECT status FROM workflow_step WHERE workflow_id = $1 AND name = 'send'",
      [workflowId],
    );
    const entries = await auditOf(world, siteId, action);
    if (orders > 1 || entries !== (step?.status === 'succeeded' ? 1 : 0))
      throw new Error(`${orders} orders, ${entries} audit entries`);
    return orders;
  };

  it(
    'vendor_restore',
    async () => {
      const bodyOf = async (siteId: string) => ({
        scope: 'web',
        timestamp: (await surfaceOf(world, siteId)).web?.points[0]?.timestamp,
      });
      const { cases } = await crashEveryStepInWorld(
        world,
        vendorRestoreWorkflow,
        {
          look,
          ledger,
          start: () => begin('vendor_restore', '/restore', bodyOf),
          judge: async (run) => {
            const orders = await judgeOrders(run, 'restore', 'vendor_snapshot.restore');
            const { web } = await world.vendor.content(run.packageId);
            if (orders === 0 && JSON.stringify(web) === JSON.stringify(vendorContent(2).web)) return 'old';
            if (orders === 1) return 'new';
            throw new Error(`${orders} orders, and the website is ${JSON.stringify(web)}`);
          },
        },
        scope,
      );
      expect(cases.length).toBeGreaterThan(4);
    },
    crashLimitMs,
  );

  it(
    'vendor_take_snapshot',
    async () => {
      const { cases } = await crashEveryStepInWorld(
        world,
        vendorTakeSnapshotWorkflow,
        {
          look,
          ledger,
          start: () => begin('vendor_take_snapshot', '', async () => ({ scope: 'web' })),
          judge: async (run) =>
            (await judgeOrders(run, 'takeSnapshot', 'vendor_snapshot.take')) === 0 ? 'old' : 'new',
        },
        scope,
      );
      expect(cases.length).toBeGreaterThan(4);
    },
    crashLimitMs,
  );
});
