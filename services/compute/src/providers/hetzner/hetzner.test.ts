import { setTimeout as wait } from 'node:timers/promises';
import { until } from '@drydock/test-kit/wait';
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
  await world.admin.orderFault({ ...rig.rollbackCall, times: 2, answer: { kind: 'fixed', status: 409, body } });
  const caller = new AbortController();
  const sending = refusalOf(world.driver.send(change, checkpoint, caller.signal));
  // After the second conflict it waits for two seconds, give or take: time enough to have read that answer, and to be called off before the next call.
  await until(async () => (await world.admin.readCalls()).filter(({ status }) => status === 409).length === 2);
  await wait(500);
  caller.abort();
  const refusal = await sending;
  expect([refusal.reason, refusal.mayPass]).toEqual(['conflict', true]);
  expect((await world.admin.readLedger()).filter(({ op }) => op === rig.rollbackOp)).toEqual([]);
  expect(await world.driver.send(change, checkpoint)).toMatchObject({ machineId, actionId: expect.any(String) });
});
