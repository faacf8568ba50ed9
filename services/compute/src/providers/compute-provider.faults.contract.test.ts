/**
 * Loses, breaks and delays the answers of the providers that are called over a network.
 *
 * @tier long
 */
import { createServer, type Server } from 'node:http';
import { closeServer, listen } from '@drydock/service/http';
import { hetznerRig } from '../../test/hetzner-rig';
import { tooManyAnswers, unreadableAnswers } from '../../test/lost-answers';
import {
  ended,
  openRig,
  orderMachine,
  type Rig,
  type RigWorld,
  reference,
  refusalOf,
  takeSnapshot,
} from '../../test/provider-rig';
import { proxmoxRig } from '../../test/proxmox-rig';
import type { Change } from './compute.types';

/** The drivers of the providers that are called over a network. A new driver needs only a line here. */
const rigs: readonly Rig[] = [hetznerRig(100_000), proxmoxRig()];

describe.each(rigs)('the compute provider $name, when calls go wrong', (rig) => {
  let world: RigWorld;
  let [machineId, snapshotId] = ['', ''];
  let canary: Server;
  let [canaryUrl, canaryHits] = ['', 0];
  beforeAll(async () => {
    canary = createServer((_request, response) => {
      canaryHits += 1;
      response.end('{}');
    });
    canaryUrl = (await listen(canary, 0)).url;
  });
  afterAll(() => closeServer(canary));
  // Each test has its own driver, because a driver stops calling a provider after repeated faults.
  beforeEach(async () => {
    world = await openRig(rig);
    machineId = await orderMachine(world, rig.order());
    await world.admin.writeDisk(machineId, '/srv/state', 'before');
    snapshotId = await takeSnapshot(world, machineId);
    await world.admin.writeDisk(machineId, '/srv/state', 'after');
  });
  afterEach(() => world.close());

  const newRollback = (): Change => ({ kind: 'rollback', reference: reference(), machineId, snapshotId });
  const rollbacks = async () => (await world.admin.readLedger()).filter(({ op }) => op === rig.rollbackOp);
  const impatient = () => world.open({ deadlineMs: 2_000 });

  it.each(unreadableAnswers)(
    'finds the rollback that was carried out and answered by %s, and there is one',
    async (_name, answerOf) => {
      const [rollback, driver] = [newRollback(), impatient()];
      const checkpoint = await driver.prepare(rollback);
      await world.admin.orderFault({ ...rig.rollbackCall, isCarriedOut: true, answer: answerOf(canaryUrl) });
      expect((await refusalOf(driver.send(rollback, checkpoint))).reason).toBe('ambiguous');
      const found = await driver.find(rollback, checkpoint);
      expect(found).toMatchObject({ machineId, actionId: expect.any(String) });
      if (found !== null) expect(await ended(world, found)).toMatchObject({ state: 'succeeded' });
      expect(await world.admin.readDisk(machineId, '/srv/state')).toBe('before');
      // The action is found even after its end, because a worker may search for it late.
      expect(await driver.find(rollback, checkpoint)).toEqual(found);
      expect([await rollbacks(), canaryHits]).toEqual([[expect.objectContaining({ resource: machineId })], 0]);
    },
  );

  it.each(unreadableAnswers)(
    'finds no rollback that never arrived and was answered by %s, and can send it then',
    async (_name, answerOf) => {
      const [rollback, driver] = [newRollback(), impatient()];
      const checkpoint = await driver.prepare(rollback);
      await world.admin.orderFault({ ...rig.rollbackCall, answer: answerOf(canaryUrl) });
      expect((await refusalOf(driver.send(rollback, checkpoint))).reason).toBe('ambiguous');
      expect(await driver.find(rollback, checkpoint)).toBeNull();
      expect(await rollbacks()).toEqual([]);
      const sent = await driver.send(rollback, checkpoint);
      expect(await ended(world, sent)).toMatchObject({ state: 'succeeded' });
      expect([(await rollbacks()).length, canaryHits]).toEqual([1, 0]);
    },
  );

  it.each(unreadableAnswers)(
    'reads a machine in spite of one answer by %s, and gives up when every answer is like it',
    async (_name, answerOf) => {
      const driver = world.open({ deadlineMs: 4_000 });
      await world.admin.orderFault({ ...rig.readMachineCall, answer: answerOf(canaryUrl) });
      expect(await driver.readMachine(machineId)).toMatchObject({ id: machineId, powerState: 'on' });
      await world.admin.orderFault({ ...rig.readMachineCall, times: 5, answer: answerOf(canaryUrl) });
      const refusal = await refusalOf(driver.readMachine(machineId));
      expect([refusal.reason, refusal.mayPass, canaryHits]).toEqual(['unavailable', true, 0]);
    },
  );

  it.each(['power_off', 'reboot'] as const)(
    'finds a %s whose answer was lost, and none that never arrived',
    async (kind) => {
      const change: Change = { kind, reference: reference(), machineId, isForced: true, guestSeconds: 1 };
      const checkpoint = await world.driver.prepare(change);
      const lost = { method: 'POST', path: rig.powerPath, answer: { kind: 'reset' } } as const;
      await world.admin.orderFault(lost);
      expect((await refusalOf(world.driver.send(change, checkpoint))).reason).toBe('ambiguous');
      expect(await world.driver.find(change, checkpoint)).toBeNull();
      await world.admin.orderFault({ ...lost, isCarriedOut: true });
      expect((await refusalOf(world.driver.send(change, checkpoint))).reason).toBe('ambiguous');
      const found = await world.driver.find(change, checkpoint);
      if (found === null) throw new Error('nothing was found');
      expect(await ended(world, found)).toMatchObject({ state: 'succeeded' });
      expect(await world.driver.readMachine(machineId)).toMatchObject({ powerState: kind === 'reboot' ? 'on' : 'off' });
    },
  );

  it('does not find an earlier rollback of the same machine', async () => {
    const [earlier, rollback] = [newRollback(), newRollback()];
    await ended(world, await world.driver.send(earlier, await world.driver.prepare(earlier)));
    await world.admin.changeClock({ advanceSeconds: 5 });
    const checkpoint = await world.driver.prepare(rollback);
    expect(await world.driver.find(rollback, checkpoint)).toBeNull();
  });

  it.each(['create', 'take_snapshot'] as const)('finds what a lost %s has made', async (kind) => {
    const order = rig.order();
    const change: Change =
      kind === 'create'
        ? { kind, reference: reference(), order }
        : { kind, reference: reference(), machineId, description: 'lost' };
    const checkpoint = await world.driver.prepare(change);
    expect(await world.driver.find(change, checkpoint)).toBeNull();
    const path = kind === 'create' ? rig.createPath : rig.snapshotPath;
    await world.admin.orderFault({ method: 'POST', path, isCarriedOut: true, answer: { kind: 'reset' } });
    expect((await refusalOf(world.driver.send(change, checkpoint))).reason).toBe('ambiguous');
    const found = await world.driver.find(change, checkpoint);
    if (found === null) throw new Error('nothing was found');
    expect(await ended(world, found)).toMatchObject({ state: 'succeeded' });
    if (kind === 'create') expect(await world.driver.findMachine(order.name)).toMatchObject({ id: found.machineId });
    else
      expect(await world.driver.readSnapshot(machineId, found.snapshotId ?? '')).toMatchObject({
        description: 'lost',
        status: 'available',
      });
  });

  it.each(tooManyAnswers)(
    'reports a bounded wait after a 429 whose headers say "%s", and has sent nothing',
    async (_name, headers, least, most) => {
      const rollback = newRollback();
      const checkpoint = await world.driver.prepare(rollback);
      await world.admin.orderFault({ ...rig.rollbackCall, answer: { kind: 'fixed', status: 429, headers } });
      const refusal = await refusalOf(world.driver.send(rollback, checkpoint));
      expect([refusal.reason, refusal.mayPass]).toEqual(['rate_limited', true]);
      expect(refusal.retryAfterSeconds).toBeGreaterThanOrEqual(least);
      expect(refusal.retryAfterSeconds).toBeLessThanOrEqual(most);
      expect(await rollbacks()).toEqual([]);
    },
  );

  it('reports that nothing was sent when nobody listens', async () => {
    const nobody = world.open({ baseUrl: 'http://127.0.0.1:1' });
    const rollback = newRollback();
    const refusal = await refusalOf(nobody.send(rollback, await world.driver.prepare(rollback)));
    expect([refusal.reason, refusal.mayPass]).toEqual(['unavailable', true]);
  });

  it('stops calling a provider that does not answer, and reports when to call again', async () => {
    const driver = world.open({ deadlineMs: 4_000 });
    await world.admin.orderFault({ path: '.', times: 1_000, answer: { kind: 'reset' } });
    for (let tries = 0; tries < 4; tries += 1) await refusalOf(driver.readMachine(machineId));
    const before = (await world.admin.readCalls()).length;
    const refusal = await refusalOf(driver.readMachine(machineId));
    expect(refusal.reason).toBe('unavailable');
    expect(refusal.retryAfterSeconds).toBeGreaterThanOrEqual(1);
    expect((await world.admin.readCalls()).length).toBe(before);
  });

  it("refuses an answer about another machine's action", async () => {
    const rollback = newRollback();
    const { actionId } = await world.driver.send(rollback, await world.driver.prepare(rollback));
    await world.admin.orderFault({
      ...rig.readActionCall,
      isCarriedOut: true,
      answer: { kind: 'edited', set: rig.foreignAction },
    });
    expect((await refusalOf(world.driver.readAction(machineId, actionId ?? ''))).reason).toBe('foreign');
  });

  it('reports that the credential is refused', async () => {
    const refusal = await refusalOf(world.open({ account: 'nobody', deadlineMs: 10_000 }).readMachine(machineId));
    expect([refusal.reason, refusal.mayPass]).toEqual(['credentials_refused', false]);
  });

  it('reports a rollback that fails at the provider, which leaves the disk as it was', async () => {
    const { machineId: unlucky } = await world.driver.send(
      ...(await prepared({
        kind: 'create',
        reference: reference(),
        order: { ...rig.order(), labels: { 'emulator.fail': rig.rollbackOp } },
      })),
    );
    await world.admin.changeClock({ advanceSeconds: 600 });
    await world.admin.writeDisk(unlucky, '/srv/state', 'before');
    const taken = await takeSnapshot(world, unlucky);
    await world.admin.writeDisk(unlucky, '/srv/state', 'after');
    const sent = await world.driver.send(
      ...(await prepared({ kind: 'rollback', reference: reference(), machineId: unlucky, snapshotId: taken })),
    );
    const action = await ended(world, sent);
    expect(action).toMatchObject({ state: 'failed', failure: { internal: expect.any(String) } });
    expect(await world.admin.readDisk(unlucky, '/srv/state')).toBe('after');
  });
  const prepared = async (change: Change): Promise<[Change, string]> => [change, await world.driver.prepare(change)];
});
