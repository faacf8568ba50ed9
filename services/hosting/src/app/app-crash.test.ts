import type { WorkflowView } from '@drydock/contracts/workflows';
import { type CrashLook, crashEveryStep } from '@drydock/test-kit/crash-every-step';
import { crashBackends, crashScope } from '@drydock/test-kit/crash-scope';
import { until } from '@drydock/test-kit/wait';
import { callerOf } from '../../test/hosting-api';
import { type HostingWorld, leaseSeconds, makeSite, openWorld } from '../../test/hosting-world';
import { pidOf, putApp } from '../../test/site-app';
import type { WorkContext } from '../sites/work';
import { restartAppWorkflow } from './restart-app.workflow';

interface Run {
  workflowId: string;
  siteId: string;
  pid: number;
}

// Three workers in a row take longer to replace than the request waits: the restart is then rightly cancelled.
const scope = crashScope({ delicate: ['touch'], never: / 3 times / });

it('restart_app survives its crash at every step', async () => {
  const world: HostingWorld = await openWorld(crashBackends()[0] ?? 'postgres', callerOf());
  const start = async (): Promise<Run> => {
    const maker = world.spawnWorker();
    const siteId = await makeSite(world).finally(() => maker.kill('SIGKILL'));
    await putApp(world, siteId);
    const pid = await pidOf(world, siteId);
    void world.api.call('POST', `/v1/sites/${siteId}/app/restart`).catch(() => undefined);
    const query = "SELECT id FROM workflow WHERE subject_id = $1 AND kind = 'restart_app'";
    const { id } = await until(async () => (await world.api.rows<{ id: string }>(query, [siteId]))[0]);
    return { siteId, pid, workflowId: id };
  };
  const look = async ({ workflowId, siteId }: Run): Promise<CrashLook> => {
    const { status, steps } = (await world.api.call('GET', `/v1/sites/${siteId}/workflows/${workflowId}`)).json as WorkflowView;
    const isUnfinished = ['queued', 'running', 'needs_attention'].includes(status);
    return { status, steps, unfinished: isUnfinished ? 1 : 0 };
  };
  /** A failed restart may have restarted all the same, which harms nobody; a successful one has. */
  const judge = async (run: Run): Promise<'old' | 'new'> => {
    const isFresh = (await pidOf(world, run.siteId)) !== run.pid;
    const { status } = await look(run);
    const audited = await world.api.rows("SELECT 1 FROM audit_outbox WHERE workflow_id = $1 AND action = 'app.restart'", [run.workflowId]);
    if (status === 'succeeded' && (!isFresh || audited.length !== 1)) throw new Error(`fresh ${isFresh}, ${audited.length} audit entries`);
    return status === 'succeeded' ? 'new' : 'old';
  };
  try {
    const definition = restartAppWorkflow(Object.freeze({}) as WorkContext);
    const fixture = {
      leaseSeconds,
      start,
      look,
      judge,
      spawnWorker: (more: { DRYDOCK_FAULTS: string }) => world.spawnWorker({ ...more }),
      ledger: async () => world.ledger().filter(({ op }) => op !== 'restart_app'),
    };
    const { cases } = await crashEveryStep(definition, fixture, scope);
    expect(cases.length).toBeGreaterThan(definition.steps.length);
  } finally {
    await world.close();
  }
}, 400_000);
