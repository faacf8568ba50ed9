import { powerStateSchema } from '@drydock/contracts/compute/compute-servers';
import { conclude, fail, retryLater, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { followChange, observeMachine, type Step, sendOnce } from '../changes/provider-change';
import { pollSeconds, readForStep } from '../changes/provider-failure';
import { defineWorkflow, driverOf, type WorkContext } from '../context/context';
import type { PowerKind } from '../providers/change.rules';
import type { Change, Machine } from '../providers/compute.types';
import type { ComputeDriver } from '../providers/compute-provider';
import { sandboxBehaviour } from './server.rules';
import { findServer, releaseMachine, releaseUnchanged } from './server.store';

const input = z.strictObject({
  deployTarget: z.string(),
  machineId: z.string(),
  change: z.enum(['power_on', 'power_off', 'reboot']),
  /** Whether the power is cut without a request to the guest. */
  isForced: z.boolean(),
  /** The power state when the work was accepted. It is shown again if nothing was changed. */
  powerBefore: powerStateSchema,
  /** The provider's checkpoint when the work was accepted; see `readEarlyCheckpoint`. */
  before: z.string().nullable(),
});

type PowerStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'input' | 'workflowId'>;

function changeOf(
  { input, workflowId }: PowerStep,
  { guestSeconds }: WorkContext,
): Extract<Change, { kind: PowerKind }> {
  const { change: kind, machineId, isForced } = input;
  const about = { reference: workflowId, machineId };
  return kind === 'power_on' ? { kind, ...about } : { kind, ...about, isForced, guestSeconds };
}

/**
 * Changes the power of a machine. The driver sends nothing if the machine is already in the wanted state. After a
 * power-off the machine must be off within `guestSeconds`. After another change the machine is read until it is no
 * longer starting, stopping or rebooting, but at most 15 times.
 */
export const powerServerWorkflow = defineWorkflow({ kind: 'power_server', input })
  .step('prepare', {
    run: async (step, context) => {
      const server = await findServer(context.database.pool, step, step.subject.id);
      if (server === null) throw conclude('server_not_operable', { internal: 'the server is gone' });
      const { failsPower, isSlow } = sandboxBehaviour(server);
      const driver = driverOf(context, step, step.input.deployTarget);
      const checkpoint =
        step.input.before ?? (await readForStep(driver.prepare(changeOf(step, context), step.signal), step));
      return { checkpoint, failsPower, endsNotBeforeMs: isSlow ? context.now().getTime() + context.slowMs : 0 };
    },
  })
  .pointOfNoReturn()
  .step('send', {
    run: (step, context) => {
      const { checkpoint, failsPower } = step.outputs.prepare;
      if (failsPower) throw conclude('power_failed', { internal: 'as the name of the sandbox server asks' });
      const driver = driverOf(context, step, step.input.deployTarget);
      return sendOnce(context, step, { driver, change: changeOf(step, context), checkpoint });
    },
  })
  .step('follow', {
    weight: 4,
    run: async (step, context) => {
      await followChange(step, driverOf(context, step, step.input.deployTarget), step.outputs.send, step.input.change);
      const leftMs = step.outputs.prepare.endsNotBeforeMs - context.now().getTime();
      if (leftMs > 0) throw retryLater({ seconds: leftMs / 1_000 });
      return { endedAtMs: context.now().getTime() };
    },
  })
  .step('observe', {
    run: (step, context) => {
      const { change, machineId, deployTarget } = step.input;
      const driver = driverOf(context, step, deployTarget);
      if (change !== 'power_off') return observeMachine(step, driver, machineId);
      return awaitOff(step, context, driver, { machineId, askedAtMs: step.outputs.follow.endedAtMs });
    },
    commit: (tx, step, machine) => releaseMachine(tx, step.subject.id, machine),
  })
  .onEnd({ failed: (tx, run) => releaseUnchanged(tx, run.subject.id, run.input.powerBefore) })
  .build();

/**
 * Waits until the machine is off. The provider's action may only mean that the guest was asked to shut down. The guest
 * may take long or ignore the request.
 */
async function awaitOff(
  step: Step,
  context: WorkContext,
  driver: ComputeDriver,
  { machineId, askedAtMs }: { machineId: string; askedAtMs: number },
): Promise<Machine> {
  const machine = await readForStep(driver.readMachine(machineId, step.signal), step);
  if (machine === null) throw fail('server_not_operable', { internal: `machine ${machineId} is gone` });
  if (machine.powerState === 'off') return machine;
  if (context.now().getTime() - askedAtMs < context.guestSeconds * 1_000)
    throw retryLater({ seconds: pollSeconds(step.attempt) });
  throw conclude('guest_unresponsive', { internal: `machine ${machineId} is ${machine.vendorStatus}` });
}
