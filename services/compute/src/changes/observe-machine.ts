import { fail, retryLater } from '@drydock/workflow/definition/step-error';
import type { Machine, PowerState } from '../providers/compute-machine.types';
import type { ComputeDriver } from '../providers/compute-provider';
import { lookedAt, pollSeconds } from './provider-failure';
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
