/**
 * Runs workflows on an emulator of Proxmox VE. `npm test` runs the workflows of this service only on an emulator of
 * Hetzner Cloud.
 *
 * @tier long
 * @processes
 */
import type { ChildProcess } from 'node:child_process';
import { ended } from '@drydock/service/testing/follow-workflow';
import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf } from '@drydock/service/testing/service-api';
import { crashBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { type ComputeWorld, openWorld } from '../test/compute-world';
import { openProxmoxCluster, type ProxmoxCluster } from '../test/proxmox-cluster';
import { vmidOf } from './providers/proxmox/proxmox-shapes';

/** The cluster behind the deploy target `pve`. The deploy target `fsn` on Hetzner Cloud exists beside it. */
let cluster: ProxmoxCluster;
let world: ComputeWorld;
let worker: ChildProcess;
beforeAll(async () => {
  cluster = await openProxmoxCluster();
  world = await openWorld(crashBackends()[0] ?? 'postgres', callerOf(), { more: { pve: cluster.target } });
  worker = world.spawnWorker({ WORKFLOW_LEASE_SECONDS: '15', RECONCILE_SECONDS: '1' });
});
afterAll(async () => {
  await world.close();
  await cluster.close();
});

async function carryOut(method: string, path: string, body?: object) {
  const answer = await world.api.call(method, path, { body });
  expect([answer.status, answer.json]).toEqual([202, expect.anything()]);
  const view = await ended(world, answer.headers['location']);
  return { id: (answer.json as { id: string }).id, status: view.status, code: view.error?.code };
}
const order = async (image: string): Promise<string> => {
  const { id, status, code } = await carryOut('POST', '/v1/compute/servers', {
    ...{ name: 'Web', deploy_target: 'pve', spec: 'small', image, zone: 'pve2' },
  });
  expect([status, code]).toEqual(['succeeded', undefined]);
  return `/v1/compute/servers/${id}`;
};
const idOf = (server: string): string => server.split('/').at(-1) ?? '';
async function takeSnapshot(server: string): Promise<string> {
  expect(await carryOut('POST', `${server}/snapshots`, { description: 'before' })).toMatchObject({
    status: 'succeeded',
  });
  const { data } = (await world.api.call('GET', `${server}/snapshots`)).json as { data: { id: string }[] };
  return `${server}/snapshots/${data[0]?.id ?? ''}`;
}

it('orders a server, takes a snapshot and rolls back once, and the later write is gone', async () => {
  const server = await order('debian-12');
  expect((await world.api.call('GET', server)).json).toMatchObject({
    status: 'active',
    operable: true,
    power_state: 'on',
    vendor_status: 'running',
    capabilities: ['compute:snapshots'],
  });
  // The addresses may come late: the reconciliation asks a guest again that did not answer during the order.
  const readAddresses = async () => ((await world.api.call('GET', server)).json as { addresses: string[] }).addresses;
  await until(async () => (await readAddresses()).length > 0);
  expect(await readAddresses()).toEqual([expect.stringMatching(/^192\.0\.2\./), expect.stringMatching(/^2001:db8:/)]);
  await cluster.writeDisk(idOf(server), 'before');
  const snapshot = await takeSnapshot(server);
  await cluster.writeDisk(idOf(server), 'after');
  expect(await carryOut('POST', snapshot)).toMatchObject({ status: 'succeeded' });
  expect([await cluster.readDisk(idOf(server)), await cluster.rollbacksOf(idOf(server))]).toEqual(['before', 1]);
  expect((await world.api.call('GET', server)).json).toMatchObject({ operable: true, power_state: 'on' });
  expect((await world.api.call('POST', `${server}/rebuild`, { body: { image: 'debian-12' } })).json).toMatchObject({
    code: 'rebuild_unsupported',
  });
  expect((await world.api.call('DELETE', snapshot)).status).toBe(204);
  const refusal = async () => refusalOf(await world.api.call('POST', snapshot));
  await until(async () => (await refusal()).endsWith(' snapshot_not_on_server'), {
    timeoutMs: 30_000,
    what: 'a snapshot that is gone',
  });
});

it('searches for a rollback whose answer was lost, and never sends it again', async () => {
  const server = await order('debian-12');
  await cluster.writeDisk(idOf(server), 'before');
  const snapshot = await takeSnapshot(server);
  await cluster.writeDisk(idOf(server), 'after');
  await cluster.admin.orderFault({ method: 'POST', path: '/rollback$', isCarriedOut: true, answer: { kind: 'reset' } });
  expect(await carryOut('POST', snapshot)).toMatchObject({ status: 'succeeded' });
  expect([await cluster.readDisk(idOf(server)), await cluster.rollbacksOf(idOf(server))]).toEqual(['before', 1]);
});

it('refuses in the request to roll back past newer snapshots, and changes nothing', async () => {
  const server = await order('debian-12-zfs');
  const oldest = await takeSnapshot(server);
  await takeSnapshot(server);
  const answer = await world.api.call('POST', oldest);
  expect([answer.status, answer.json]).toMatchObject([422, { code: 'newer_snapshots_exist' }]);
  expect(await cluster.rollbacksOf(idOf(server))).toBe(0);
});

it('refuses, just before the send, to roll back past a snapshot that was made after the request was answered', async () => {
  const server = await order('debian-12-zfs');
  const oldest = await takeSnapshot(server);
  const newest = await takeSnapshot(server);
  const [oldestName, newestName] = [oldest, newest].map(idOf);
  const linkNewest = (parent: string | null | undefined) =>
    cluster.admin.call('PATCH', `servers/${vmidOf(idOf(server))}/snapshots/${newestName}`, { parent });
  // The newest snapshot is unlinked from the oldest, so that the request accepts the rollback.
  await linkNewest(null);
  worker.kill('SIGSTOP');
  const answer = await world.api.call('POST', oldest);
  await linkNewest(oldestName);
  worker.kill('SIGCONT');
  expect(answer.status).toBe(202);
  expect(await ended(world, answer.headers['location'])).toMatchObject({
    status: 'failed',
    error: { code: 'newer_snapshots_exist' },
  });
  expect(await cluster.rollbacksOf(idOf(server))).toBe(0);
  expect((await world.api.call('GET', server)).json).toMatchObject({ operable: true, power_state: 'on' });
});

it('finds the machine of an order whose answer was lost while it is still being cloned, and makes no second one', async () => {
  const clonesBefore = (await cluster.admin.readLedger()).filter(({ op }) => op === 'qmclone').length;
  await cluster.admin.orderFault({ method: 'POST', path: '/clone$', isCarriedOut: true, answer: { kind: 'reset' } });
  await order('debian-12');
  expect((await cluster.admin.readLedger()).filter(({ op }) => op === 'qmclone')).toHaveLength(clonesBefore + 1);
});

it('fails an order for an image or a node that does not exist, and leaves no machine', async () => {
  for (const [image, zone] of [
    ['windows', 'pve2'],
    ['debian-12', 'pve9'],
  ]) {
    const answer = await carryOut('POST', '/v1/compute/servers', {
      name: 'Web',
      deploy_target: 'pve',
      spec: 'small',
      image,
      zone,
    });
    expect(answer).toMatchObject({ status: 'failed', code: 'order_refused' });
  }
});
