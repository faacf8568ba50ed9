import { setTimeout as wait } from 'node:timers/promises';
import { until } from '@drydock/testing/wait';
import { hetznerRig } from '../../../test/hetzner-rig';
import { openRig, orderMachine, type RigWorld, reference, refusalOf, takeSnapshot } from '../../../test/provider-rig';
import type { Change } from '../compute.types';

const rig = hetznerRig();
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
