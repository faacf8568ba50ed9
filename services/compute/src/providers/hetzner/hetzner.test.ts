import { hetznerRig } from '../../../test/hetzner-rig';
import { openRig, orderMachine, type RigWorld, reference, refusalOf, takeSnapshot } from '../../../test/provider-rig';
import type { Change } from '../compute-change.types';

const rig = hetznerRig();
let world: RigWorld;
beforeAll(async () => {
  world = await openRig(rig);
});
afterAll(() => world.close());

it('a change that is called off while it waits out a conflict was not accepted, says so, and may be sent again', async () => {
  const machineId = await orderMachine(world, rig.order());
  const change: Change = { kind: 'rollback', reference: reference(), machineId, snapshotId: await takeSnapshot(world, machineId) };
  const checkpoint = await world.driver.prepare(change);
  const body = JSON.stringify({ error: { code: 'conflict', message: 'try again', details: null } });
  await world.admin.orderFault({ ...rig.rollbackCall, answer: { kind: 'fixed', status: 409, body } });
  const refusal = await refusalOf(world.driver.send(change, checkpoint, AbortSignal.timeout(500)));
  expect([refusal.reason, refusal.mayPass]).toEqual(['conflict', true]);
  expect((await world.admin.readLedger()).filter(({ op }) => op === rig.rollbackOp)).toEqual([]);
  expect(await world.driver.send(change, checkpoint)).toMatchObject({ machineId, actionId: expect.any(String) });
});
