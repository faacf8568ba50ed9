/**
 * Kills a worker in each step of an application's restart.
 *
 * @tier long
 * @processes
 */
import { crashEveryStepInWorld } from '@drydock/service/testing/crash-in-world';
import { callerOf } from '@drydock/service/testing/service-api';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { awaitedWorkflowOf } from '@drydock/workflow/testing/workflow-record';
import { type HostingWorld, makeSite, openWorld } from '../../test/hosting-world';
import { processOf, putApp } from '../../test/site-app';
import { lookAtRun, type SiteRun } from '../../test/site-run';
import { restartAppWorkflow } from './restart-app.workflow';

interface Run extends SiteRun {
  pid: number;
}

// Cases in which three workers die are left out. A request stops waiting before three workers are replaced, so the
// restart would be cancelled.
const scope = crashScope({ delicate: ['touch'], never: / 3 times /, isHasty: true });

it(
  'restart_app survives its crash at every step',
  async () => {
    const world: HostingWorld = await openWorld(crashBackends()[0] ?? 'postgres', callerOf());
    const start = async (): Promise<Run> => {
      const siteId = await world.withWorker(() => makeSite(world));
      await putApp(world, siteId);
      const pid = await processOf(world, siteId);
      void world.api.call('POST', `/v1/sites/${siteId}/app/restart`).catch(() => undefined);
      return { siteId, pid, workflowId: await awaitedWorkflowOf(world.api, siteId, 'restart_app') };
    };
    const look = (run: Run) => lookAtRun(world, run);
    /**
     * A restart whose workflow failed may still have happened, which does no harm. A restart whose workflow succeeded
     * must have happened.
     */
    const judge = async (run: Run): Promise<'old' | 'new'> => {
      const isFresh = (await processOf(world, run.siteId)) !== run.pid;
      const { status } = await look(run);
      const audited = await world.api.rows(
        "SELECT 1 FROM audit_outbox WHERE workflow_id = $1 AND action = 'app.restart'",
        [run.workflowId],
      );
      if (status === 'succeeded' && (!isFresh || audited.length !== 1))
        throw new Error(`fresh ${isFresh}, ${audited.length} audit entries`);
      return status === 'succeeded' ? 'new' : 'old';
    };
    try {
      const definition = restartAppWorkflow;
      const fixture = {
        start,
        look,
        judge,
        ledger: async () => world.ledger().filter(({ op }) => op !== 'restart_app'),
      };
      const { cases } = await crashEveryStepInWorld(world, definition, fixture, scope);
      expect(cases.length).toBeGreaterThan(definition.steps.length);
    } finally {
      await world.close();
    }
  },
  crashLimitMs,
);
