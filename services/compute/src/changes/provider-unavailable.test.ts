import { Problem } from '@drydock/contracts/platform/problem';
import { hetznerRig } from '../../test/hetzner-rig';
import { openRig, orderMachine, type RigWorld } from '../../test/provider-rig';
import { readForRequest } from './provider-failure';

const rig = hetznerRig();
let world: RigWorld;
beforeAll(async () => {
  world = await openRig(rig);
});
afterAll(() => world.close());

it('stops reading the pages of a listing when the request is answered, and pauses its calls', async () => {
  const machineId = await orderMachine(world, rig.order());
  const answer = { kind: 'edited', set: { 'meta.pagination.next_page': 2 } } as const;
  await world.admin.orderFault({ method: 'GET', path: '^/v1/images$', times: 1_000, delayMs: 100, answer });
  const pages = async () => (await world.admin.readCalls()).filter(({ path }) => path === '/v1/images').length;
  const refusal: unknown = await readForRequest((signal) => world.driver.listSnapshots(machineId, signal), 1_000).catch(
    (error: unknown) => error,
  );
  expect(refusal instanceof Problem && refusal.code).toBe('dependency_unavailable');
  const asked = await pages();
  // The loop takes at least a second. A listing that the time limit had not stopped would read further pages meanwhile.
  for (let calls = 0; calls < 10; calls += 1)
    await world.driver.listMachines().then(() => new Promise((resolve) => setTimeout(resolve, 100)));
  expect(await pages()).toBeLessThanOrEqual(asked + 1);
  await world.admin.clearFaults();
});
