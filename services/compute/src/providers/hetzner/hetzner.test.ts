import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { closeServer, listen } from '@drydock/service/http';
import { until } from '@drydock/testing/wait';
import { hetznerRig } from '../../../test/hetzner-rig';
import {
  carryOut,
  openRig,
  orderMachine,
  type RigWorld,
  reference,
  refusalOf,
  takeSnapshot,
} from '../../../test/provider-rig';
import type { Change } from '../compute.types';

const rig = hetznerRig(100_000);
let world: RigWorld;
beforeAll(async () => {
  world = await openRig(rig);
});
afterAll(() => world.close());

it('a change that is aborted while it waits out a conflict was not accepted, and may be sent again', async () => {
  const machineId = await orderMachine(world, rig.order());
  const change: Change = {
    kind: 'rollback',
    reference: reference(),
    machineId,
    snapshotId: await takeSnapshot(world, machineId),
  };
  const checkpoint = await world.driver.prepare(change);
  const body = JSON.stringify({ error: { code: 'conflict', message: 'try again', details: null } });
  await world.admin.orderFault({ ...rig.rollbackCall, times: 50, answer: { kind: 'fixed', status: 409, body } });
  const caller = new AbortController();
  const sending = refusalOf(world.driver.send(change, checkpoint, caller.signal));
  // After the second conflict the driver waits for seconds, which leaves time for the abort. If the abort still comes
  // too late, the third call is refused with the same conflict.
  await until(async () => (await world.admin.readCalls()).filter(({ status }) => status === 409).length >= 2);
  await wait(500);
  caller.abort();
  const refusal = await sending;
  expect([refusal.reason, refusal.mayPass]).toEqual(['conflict', true]);
  expect((await world.admin.readLedger()).filter(({ op }) => op === rig.rollbackOp)).toEqual([]);
  await world.admin.clearFaults();
  expect(await world.driver.send(change, checkpoint)).toMatchObject({ machineId, actionId: expect.any(String) });
});

it('lets the ordered SSH keys sign in also after a rebuild', async () => {
  const sshKeys = ['ssh-ed25519 AAAAC3NzAnna'];
  const machineId = await orderMachine(world, { ...rig.order(), sshKeys });
  await carryOut(world, { kind: 'rebuild', reference: reference(), machineId, image: 'debian-12' });
  expect(await world.admin.readDisk(machineId, '/root/.ssh/authorized_keys')).toBe(`${sshKeys[0]}\n`);
});

it('reports a wrong URL as an error, and not as a project without machines', async () => {
  const machineId = await orderMachine(world, rig.order());
  const astray = world.open({ baseUrl: `${world.url()}/elsewhere` });
  expect((await refusalOf(astray.listMachines())).reason).toBe('rejected');
  expect((await refusalOf(astray.findMachine('web'))).reason).toBe('rejected');
  expect((await refusalOf(astray.listSnapshots(machineId))).reason).toBe('rejected');
});

it('keeps the answer to an accepted call out of errors, because it contains the password of root', async () => {
  const machineId = await orderMachine(world, rig.order());
  const change: Change = {
    kind: 'rollback',
    reference: reference(),
    machineId,
    snapshotId: await takeSnapshot(world, machineId),
  };
  const checkpoint = await world.driver.prepare(change);
  const body = JSON.stringify({ root_password: 'correct-horse', action: { id: 'of another shape' } });
  await world.admin.orderFault({ ...rig.rollbackCall, answer: { kind: 'fixed', status: 201, body } });
  const refusal = await refusalOf(world.driver.send(change, checkpoint));
  expect(refusal.reason).toBe('ambiguous');
  expect(refusal.message).toContain('201');
  expect(refusal.message).not.toContain('correct-horse');
});

/** Calls the provider as the owner of the project would, without the driver. */
async function ask(method: string, path: string, body?: object): Promise<{ image?: { id: number } }> {
  const headers = { authorization: 'Bearer token-of-one', 'content-type': 'application/json' };
  const sent = { method, headers, body: body === undefined ? null : JSON.stringify(body) };
  const answer = await fetch(`${world.url()}/v1${path}`, sent);
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}`);
  return answer.status === 204 ? {} : ((await answer.json()) as { image?: { id: number } });
}
async function makeImage(machineId: string, order: object = {}): Promise<string> {
  const { image } = await ask('POST', `/servers/${machineId}/actions/create_image`, order);
  await world.admin.changeClock({ advanceSeconds: 60 });
  return String(image?.id);
}
const listed = async (machineId: string): Promise<string[]> =>
  (await world.driver.listSnapshots(machineId)).map(({ id }) => id);
const listings = async (): Promise<number> =>
  (await world.admin.readCalls()).filter(({ path }) => path === '/v1/images').length;

it('lists the snapshots of a machine with as many calls, however many snapshots other machines have', async () => {
  const [machineId, neighbour] = [await orderMachine(world, rig.order()), await orderMachine(world, rig.order())];
  const mine = await takeSnapshot(world, machineId);
  const callsOfListing = async (): Promise<number> => {
    const before = await listings();
    expect(await listed(machineId)).toEqual([mine]);
    return (await listings()) - before;
  };
  const alone = await callsOfListing();
  for (let made = 0; made < 60; made += 1) await takeSnapshot(world, neighbour);
  expect(await callsOfListing()).toBe(alone);
});

it('lists snapshots that staff or an earlier release have made, and backups, beside its own', async () => {
  const [machineId, neighbour] = [await orderMachine(world, rig.order()), await orderMachine(world, rig.order())];
  const byStaff = await makeImage(machineId);
  const byEarlier = await makeImage(machineId, { labels: { 'drydock-reference': reference() } });
  const byProvider = await makeImage(machineId, { type: 'backup' });
  await makeImage(neighbour);
  await makeImage(neighbour, { type: 'backup' });
  const byDrydock = await takeSnapshot(world, machineId);
  expect(await listed(machineId)).toEqual([byDrydock, byProvider, byEarlier, byStaff]);
});

it('reports a listing that is too long as an error, and not as the part that it has read', async () => {
  const machineId = await orderMachine(world, rig.order());
  const answer = { kind: 'edited', set: { 'meta.pagination.next_page': 2 } } as const;
  await world.admin.orderFault({ method: 'GET', path: '^/v1/(images|servers)$', times: 1_000, answer });
  expect((await refusalOf(world.driver.listSnapshots(machineId))).reason).toBe('rejected');
  expect((await refusalOf(world.driver.listMachines())).reason).toBe('rejected');
  await world.admin.clearFaults();
});

it('lists every snapshot that stays, although another is deleted between two pages', async () => {
  const machineId = await orderMachine(world, rig.order());
  const made: string[] = [];
  for (let more = 0; more < 51; more += 1) made.push(await makeImage(machineId));
  const [oldest = '', newest = ''] = [made[0], made.at(-1)];
  let deletions = 0;
  // Deletes the newest snapshot just before the second page is read, so that the oldest moves to the first page.
  const between = createServer((incoming, outgoing) => {
    const answerIt = async (): Promise<void> => {
      const isSecondPage = new URL(incoming.url ?? '', world.url()).searchParams.get('page') === '2';
      if (isSecondPage && deletions === 0) {
        deletions += 1;
        await ask('DELETE', `/images/${newest}`);
      }
      const headers = { authorization: incoming.headers.authorization ?? '' };
      const answer = await fetch(`${world.url()}${incoming.url}`, { headers });
      outgoing.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    };
    answerIt().catch((error: unknown) => outgoing.destroy(error instanceof Error ? error : undefined));
  });
  const { url } = await listen(between, 0);
  const ids = (await world.open({ baseUrl: url }).listSnapshots(machineId)).map(({ id }) => id);
  await closeServer(between);
  expect([deletions, ids.length]).toEqual([1, 50]);
  expect(ids).toContain(oldest);
  expect(ids).not.toContain(newest);
});
