/**
 * Kills a worker in each step of each workflow.
 *
 * @tier long
 * @processes
 */
import { auditRowsOf } from '@drydock/service/testing/audit-log';
import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture, CrashLook } from '@drydock/testing/crash-every-step';
import { providerEntries } from '@drydock/testing/ledger';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { awaitedWorkflowOf, lookAtRecord } from '@drydock/workflow/testing/workflow-record';
import { type ComputeWorld, makeDisk, openWorld, rollBack } from '../test/compute-world';
import { startReconciliation } from '../test/given-server';
import { workflows } from './workflows';

interface Run {
  workflowId: string;
  serverId: string;
  machineId?: string;
}

const scope = crashScope({ delicate: ['send', 'create'] });

// From `workflows` the suite takes only the names of the steps, which of them can be undone, and the point of no
// return. The worker processes load the definitions themselves.
describe.each(crashBackends())('every step survives its crash, with the queue on %s', (backend) => {
  let world: ComputeWorld;
  beforeAll(async () => {
    // The emulator's clock is so fast that no step waits for the provider.
    world = await openWorld(backend, callerOf(), { clockScale: 5_000 });
  });
  afterAll(() => world.close());

  const accepted = (answer: { status: number; text: string; headers: Record<string, unknown> }): Run => {
    if (answer.status !== 202) throw new Error(answer.text);
    const [, , , , serverId = '', , workflowId = ''] = String(answer.headers['location']).split('/');
    return { workflowId, serverId };
  };
  const look = async ({ workflowId }: Run): Promise<CrashLook> => {
    expect(await auditRowsOf(world.api, workflowId)).toBeLessThanOrEqual(1);
    return lookAtRecord(world.api, workflowId);
  };
  const crash = async (kind: string, fixture: Pick<CrashFixture<Run>, 'start' | 'judge'>) => {
    const definition = definitionOf(workflows, kind);
    const ledger = async () => providerEntries(await world.project.ledger());
    const { cases } = await crashEveryStepInWorld(world, definition, { look, ledger, ...fixture }, scope);
    expect(cases.length).toBeGreaterThanOrEqual(definition.steps.length);
  };
  /**
   * Returns how often the project accepted `op` for a machine: 0 or 1. Throws if the project accepted `op` more often,
   * because the worker then sent the change twice.
   */
  const takenOn = async (machineId: string, op: string): Promise<number> => {
    const entries = (await world.project.ledger(op)).filter(({ resource }) => resource === machineId);
    if (entries.length > 1) throw new Error(`${entries.length} times ${op} of ${machineId}`);
    return entries.length;
  };
  const server = async (serverId: string) => {
    const [row] = await world.api.rows<{
      status: string;
      operable: boolean;
      power_state: string;
      image: string;
      machine_id: string | null;
    }>('SELECT status, operable, power_state, image, machine_id FROM servers WHERE id = $1', [serverId]);
    if (row === undefined) throw new Error('the server is gone');
    return row;
  };

  it(
    'order_server',
    () =>
      crash('order_server', {
        start: async () => {
          const body = { name: 'Web', deploy_target: 'fsn', spec: 'cpx11', image: 'ubuntu-24.04', zone: 'fsn1' };
          return accepted(await world.api.call('POST', '/v1/compute/servers', { body }));
        },
        judge: async ({ serverId }) => {
          const { status, machine_id: machineId } = await server(serverId);
          const machines = await world.project.machinesNamed(serverId);
          if (machineId !== null) await takenOn(machineId, 'create_server');
          if (status === 'active' && machines.length === 1) return 'new';
          if (status === 'failed' && machines.length === 0) return 'old';
          throw new Error(`${status} with ${machines.length} machines`);
        },
      }),
    crashLimitMs,
  );

  it(
    'take_snapshot',
    () =>
      crash('take_snapshot', {
        start: async () => {
          const { serverId, machineId } = await makeDisk(world);
          const asked = world.api.call('POST', `/v1/compute/servers/${serverId}/snapshots`, {
            body: { description: 'mine' },
          });
          asked.catch(() => undefined);
          return { serverId, machineId, workflowId: await awaitedWorkflowOf(world.api, serverId, 'take_snapshot') };
        },
        judge: async ({ serverId }) => {
          const listed = (await world.api.call('GET', `/v1/compute/servers/${serverId}/snapshots`)).json as {
            data: { description: string; status: string }[];
          };
          const mine = listed.data.filter(({ description }) => description === 'mine').map(({ status }) => status);
          if (mine.join() === 'available') return 'new';
          if (mine.length === 0) return 'old';
          throw new Error(`snapshots: ${mine.join()}`);
        },
      }),
    crashLimitMs,
  );

  it(
    'delete_snapshot',
    () =>
      crash('delete_snapshot', {
        start: async () => {
          const { serverId, machineId, snapshotId } = await makeDisk(world);
          world.api.call('DELETE', `/v1/compute/servers/${serverId}/snapshots/${snapshotId}`).catch(() => undefined);
          return { serverId, machineId, workflowId: await awaitedWorkflowOf(world.api, serverId, 'delete_snapshot') };
        },
        judge: async ({ machineId = '' }) =>
          (await world.project.snapshotsOf(machineId)).length === 0 ? 'new' : 'old',
      }),
    crashLimitMs,
  );

  it(
    'roll_back_server',
    () =>
      crash('roll_back_server', {
        start: async () => {
          const disk = await makeDisk(world);
          return { ...accepted(await rollBack(world, disk)), machineId: disk.machineId };
        },
        judge: async ({ machineId = '', serverId }) => {
          const [content, count, { operable, status }] = [
            await world.project.readDisk(machineId),
            await takenOn(machineId, 'rebuild_server'),
            await server(serverId),
          ];
          expect(status).toBe('active');
          const unfinished = await world.api.rows(
            "SELECT 1 FROM workflow WHERE subject_id = $1 AND status = 'needs_attention'",
            [serverId],
          );
          expect(operable).toBe(unfinished.length === 0);
          if (count === 0 && content === 'old') return 'old';
          // A workflow that waits for staff may have left the provider working, so the disk may still be the old one.
          if (count === 1 && (content === 'new' || unfinished.length === 1)) return 'new';
          throw new Error(`${count} rebuilds, the disk says ${content}`);
        },
      }),
    crashLimitMs,
  );

  it(
    'rebuild_server',
    () =>
      crash('rebuild_server', {
        start: async () => {
          const { serverId, machineId } = await makeDisk(world);
          const answer = await world.api.call('POST', `/v1/compute/servers/${serverId}/rebuild`, {
            body: { image: 'debian-12' },
          });
          return { ...accepted(answer), machineId };
        },
        judge: async ({ machineId = '', serverId }) => {
          const [content, count, { image }] = [
            await world.project.readDisk(machineId),
            await takenOn(machineId, 'rebuild_server'),
            await server(serverId),
          ];
          if (count === 0 && content === 'old' && image === 'ubuntu-24.04') return 'old';
          if (count === 1) return 'new';
          throw new Error(`${count} rebuilds, ${image}, the disk says ${content}`);
        },
      }),
    crashLimitMs,
  );

  const powerChanges = [
    { asked: 'power-on', from: 'off', op: 'start_server', ends: 'on', sent: {} },
    { asked: 'power-off', from: 'running', op: 'stop_server', ends: 'off', sent: { body: { force: true } } },
    { asked: 'reboot', from: 'running', op: 'reset_server', ends: 'on', sent: { body: { force: true } } },
  ] as const;
  it(
    'power_server',
    () => {
      let runs = 0;
      const changes = new Map<string, (typeof powerChanges)[number]>();
      return crash('power_server', {
        start: async () => {
          const change = powerChanges[runs % powerChanges.length] ?? powerChanges[0];
          runs += 1;
          const { serverId, machineId } = await makeDisk(world);
          changes.set(serverId, change);
          await world.project.admin('PATCH', `/servers/${machineId}`, { status: change.from });
          return {
            ...accepted(await world.api.call('POST', `/v1/compute/servers/${serverId}/${change.asked}`, change.sent)),
            machineId,
          };
        },
        judge: async ({ machineId = '', serverId }) => {
          const { op = '', ends = '' } = changes.get(serverId) ?? {};
          const [count, { operable, power_state: power }] = [await takenOn(machineId, op), await server(serverId)];
          if (count === 0) return 'old';
          // A workflow that waits for staff may have left the provider working, so the power may not have changed yet.
          if (!operable || power === ends) return 'new';
          throw new Error(`${op} was taken on, and the server is ${power}`);
        },
      });
    },
    crashLimitMs,
  );

  it(
    'delete_server',
    () =>
      crash('delete_server', {
        start: async () => {
          const { serverId, machineId } = await makeDisk(world);
          return { ...accepted(await world.api.call('DELETE', `/v1/compute/servers/${serverId}`)), machineId };
        },
        judge: async ({ machineId = '', serverId, workflowId }) => {
          const [count, { status }] = [await takenOn(machineId, 'delete_server'), await server(serverId)];
          const machines = await world.project.machinesNamed(serverId);
          const [workflow] = await world.api.rows<{ status: string }>('SELECT status FROM workflow WHERE id = $1', [
            workflowId,
          ]);
          if (count === 0 && machines.length === 1 && status !== 'terminated') return 'old';
          const told = `${count} deletions, ${machines.length} machines, a server ${status} and a workflow ${workflow?.status}`;
          if (count !== 1 || (status === 'terminated' && machines.length > 0)) throw new Error(told);
          if (workflow?.status !== 'succeeded') return 'new';
          if (status !== 'terminated' || (await world.project.snapshotsOf(machineId)).length > 0) throw new Error(told);
          return 'new';
        },
      }),
    crashLimitMs,
  );

  it(
    'reconcile_servers',
    () =>
      crash('reconcile_servers', {
        start: async () => {
          const { serverId, machineId } = await makeDisk(world, { powerState: 'off' });
          return { serverId, machineId, workflowId: await startReconciliation(world.api) };
        },
        judge: async ({ serverId }) => ((await server(serverId)).power_state === 'on' ? 'new' : 'old'),
      }),
    crashLimitMs,
  );
});
