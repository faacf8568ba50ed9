/**
 * Kills a worker in each step of an order, a rollback and a deletion on Proxmox VE.
 *
 * @tier long
 * @processes
 */
import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
import { ended, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture } from '@drydock/testing/crash-every-step';
import { providerEntries } from '@drydock/testing/ledger';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { lookAtRecord } from '@drydock/workflow/testing/workflow-record';
import { type ComputeWorld, openWorld } from '../test/compute-world';
import { openProxmoxCluster, type ProxmoxCluster } from '../test/proxmox-cluster';
import { vmidOf } from './providers/proxmox/proxmox-shapes';
import { workflows } from './workflows';

interface Run {
  workflowId: string;
  serverId: string;
}

/**
 * A worker is killed in every step. In `send` a worker is also frozen, and the effect of the step is repeated, because
 * the outcome of `send` depends on how this driver finds a change that the provider has accepted.
 */
const scope = crashScope({ delicate: ['send'] });

let cluster: ProxmoxCluster;
let world: ComputeWorld;
beforeAll(async () => {
  cluster = await openProxmoxCluster(5_000);
  world = await openWorld(crashBackends()[0] ?? 'postgres', callerOf(), { more: { pve: cluster.target } });
});
afterAll(async () => {
  await world.close();
  await cluster.close();
});

const order = async (): Promise<Run & { location: unknown }> => {
  const body = { name: 'Web', deploy_target: 'pve', spec: 'small', image: 'debian-12', zone: 'pve2' };
  const answer = await world.api.call('POST', '/v1/compute/servers', { body });
  return {
    serverId: (answer.json as { id: string }).id,
    workflowId: workflowIdOf(answer),
    location: answer.headers['location'],
  };
};
const crash = async (kind: string, fixture: Pick<CrashFixture<Run>, 'start' | 'judge'>): Promise<void> => {
  const look = ({ workflowId }: Run) => lookAtRecord(world.api, workflowId);
  const ledger = async () => providerEntries(await cluster.admin.readLedger());
  const { cases } = await crashEveryStepInWorld(
    world,
    definitionOf(workflows, kind),
    { look, ledger, ...fixture },
    scope,
  );
  expect(cases.length).toBeGreaterThan(0);
};
const statusOf = async (serverId: string): Promise<string> => {
  const [row] = await world.api.rows<{ status: string }>('SELECT status FROM servers WHERE id = $1', [serverId]);
  return row?.status ?? 'gone';
};
/** Returns how many tasks of this type the cluster has accepted for the server's machine. */
const tasksOf = async (serverId: string, op: string): Promise<number> =>
  (await cluster.admin.readLedger()).filter((entry) => entry.op === op && entry.resource === String(vmidOf(serverId)))
    .length;

it(
  'order_server makes one machine on Proxmox VE or none, whichever of its steps a worker dies in',
  () =>
    crash('order_server', {
      start: order,
      judge: async ({ serverId }) => {
        const [status, clones] = [await statusOf(serverId), await tasksOf(serverId, 'qmclone')];
        if (clones > 1) throw new Error(`${clones} clones`);
        if (status === 'active' && clones === 1) return 'new';
        const isGone = clones === 0 || (await tasksOf(serverId, 'qmdestroy')) === 1;
        if (status === 'failed' && isGone) return 'old';
        throw new Error(`${status} after ${clones} clones`);
      },
    }),
  crashLimitMs,
);

it(
  'roll_back_server rolls back once on Proxmox VE or not at all, whichever of its steps a worker dies in',
  () =>
    crash('roll_back_server', {
      start: async () => {
        const { serverId, location } = await order();
        expect(await ended(world, location)).toMatchObject({ status: 'succeeded' });
        const server = `/v1/compute/servers/${serverId}`;
        await cluster.writeDisk(serverId, 'new');
        const taken = await world.api.call('POST', `${server}/snapshots`, { body: { description: 'before' } });
        expect(await ended(world, taken.headers['location'])).toMatchObject({ status: 'succeeded' });
        const { data } = (await world.api.call('GET', `${server}/snapshots`)).json as { data: { id: string }[] };
        await cluster.writeDisk(serverId, 'old');
        return {
          serverId,
          workflowId: workflowIdOf(await world.api.call('POST', `${server}/snapshots/${data[0]?.id ?? ''}`)),
        };
      },
      judge: async ({ serverId }) => {
        const [content, count] = [await cluster.readDisk(serverId), await cluster.rollbacksOf(serverId)];
        if (count === 0 && content === 'old') return 'old';
        if (count === 1 && content === 'new') return 'new';
        throw new Error(`${count} rollbacks, the disk says ${content}`);
      },
    }),
  crashLimitMs,
);

it(
  'delete_server stops and destroys one machine on Proxmox VE or none, whichever of its steps a worker dies in',
  () =>
    crash('delete_server', {
      start: async () => {
        const { serverId, location } = await order();
        expect(await ended(world, location)).toMatchObject({ status: 'succeeded' });
        return {
          serverId,
          workflowId: workflowIdOf(await world.api.call('DELETE', `/v1/compute/servers/${serverId}`)),
        };
      },
      judge: async ({ serverId }) => {
        const [status, count] = [await statusOf(serverId), await tasksOf(serverId, 'qmdestroy')];
        if (count === 0 && status !== 'terminated') return 'old';
        if (count === 1) return 'new';
        throw new Error(`${count} times destroyed, and the server is ${status}`);
      },
    }),
  crashLimitMs,
);
