import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { conclude, fail, retryLater } from '@drydock/workflow/definition';
import type { Accepted, Change, Machine, PowerState } from '../providers/compute.types';
import type { ComputeDriver } from '../providers/compute-provider';
import { codeOf, lookedAt, pollSeconds } from './provider-failure';
import type { Step } from './send-once';

const passing: readonly PowerState[] = ['rebooting', 'starting', 'stopping'];
/** The most looks, which take about two minutes. After them a machine that is still changing is shown as it is. */
const looksMax = 15;

/** The machine, once it is neither starting nor stopping. */
export async function observeMachine(step: Step, driver: ComputeDriver, machineId: string): Promise<Machine> {
  const machine = await lookedAt(driver.readMachine(machineId, step.signal), step);
  if (machine === null) throw fail('server_not_operable', { internal: `machine ${machineId} is gone` });
  if (passing.includes(machine.powerState) && step.attempt < looksMax)
    throw retryLater({ seconds: pollSeconds(step.attempt) });
  return machine;
}

/** The problem code that the customer sees when the provider fails at this kind of work. */
const failureCodes: Readonly<Record<Change['kind'], ProblemCode>> = {
  create: 'order_failed',
  start: 'order_failed',
  power_on: 'power_failed',
  power_off: 'power_failed',
  reboot: 'power_failed',
  delete: 'deletion_failed',
  take_snapshot: 'snapshot_failed',
  delete_snapshot: 'snapshot_failed',
  rollback: 'rollback_failed',
  rebuild: 'rebuild_failed',
};

/**
 * Looks once at the provider's work. Returns when it has succeeded; while it runs it throws, so that the step is run
 * again and no worker waits.
 */
export async function followChange(
  step: Step,
  driver: ComputeDriver,
  accepted: Accepted,
  kind: Change['kind'],
): Promise<void> {
  const { actionId, machineId } = accepted;
  if (actionId === null) return;
  const action = await lookedAt(driver.readAction(machineId, actionId, step.signal), step);
  if (action.state === 'running') {
    step.progress((action.progress ?? 0) / 100);
    throw retryLater({ seconds: pollSeconds(step.attempt) });
  }
  if (action.state === 'succeeded') return;
  const { reason, internal } = action.failure ?? { reason: 'rejected', internal: 'no reason given' };
  const isTold = reason !== 'machine_not_found' && reason !== 'unsupported';
  throw conclude((isTold ? codeOf(reason, kind) : undefined) ?? failureCodes[kind], {
    internal: `${action.command} ${action.id}: ${internal}`,
  });
}
