import { problems } from '@drydock/contracts/platform/problems';
import { fail, retryLater, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { carryOutDeletion, followChange, retryCleanUp, type Step, sendOnce } from '../changes/provider-change';
import { pollSeconds, readForStep, refusedSend } from '../changes/provider-failure';
import { secondsOfSearch } from '../changes/provider-send.store';
import { defineWorkflow, driverOf, type WorkContext } from '../context/context';
import type { Machine, MachineOrder } from '../providers/compute.types';
import { type ComputeDriver, ComputeError } from '../providers/compute-provider';
import { activateServer, databaseTime, failServer, findServer, recordMachine } from './server.store';

/**
 * Deletes the machine that a failed order may have made, and returns once the provider does not know it any more. The
 * machine is found by its name, because the answer to the order may have been lost. If `machineId` is known, the
 * machine with this number is read too, because a listing may miss a machine for a moment. That machine is deleted only
 * if it has the server's name, because providers reuse numbers.
 */
async function discardMachine(
  { database }: Pick<WorkContext, 'database'>,
  step: Step & { subject: { id: string } },
  driver: ComputeDriver,
  machineId: string | null,
): Promise<void> {
  const { subject, signal } = step;
  const find = async (): Promise<Machine | null> => {
    const named = await readForStep(driver.findMachine(subject.id, signal), step);
    if (named !== null || machineId === null) return named;
    const numbered = await readForStep(driver.readMachine(machineId, signal), step);
    return numbered?.name === subject.id ? numbered : null;
  };
  const machine = await find();
  if (machine === null) {
    const searchedSeconds = await secondsOfSearch(database.sql(), step.workflowId);
    if (searchedSeconds === null || searchedSeconds >= driver.lostAnswerSeconds) return;
    throw retryCleanUp();
  }
  await carryOutDeletion(step, driver, {
    kind: 'delete',
    reference: step.workflowId,
    machineId: machine.id,
    name: step.subject.id,
  });
  if ((await find()) !== null) throw retryCleanUp();
}

/**
 * Gives the machine its ordered size and starts it. The change may be sent again at any time, because a running machine
 * is left as it is.
 */
async function startMachine(step: Step, driver: ComputeDriver, machineId: string, order: MachineOrder): Promise<void> {
  const change = { kind: 'start', reference: step.workflowId, machineId, order } as const;
  const checkpoint = await readForStep(driver.prepare(change, step.signal), step);
  const { actionId } = await driver.send(change, checkpoint, step.signal).catch((error: unknown) => {
    if (!(error instanceof ComputeError)) throw error;
    throw error.reason === 'ambiguous'
      ? retryLater({ seconds: pollSeconds(step.attempt) })
      : refusedSend(error, change.kind, step);
  });
  // The action is not followed, because the machine itself shows whether it runs.
  if (actionId !== null) step.log.debug({ action: actionId }, 'the machine is being started');
}

const input = z.strictObject({
  ...{ deployTarget: z.string(), spec: z.string(), image: z.string(), zone: z.string() },
  sshKeys: z.array(z.string()).optional(),
});

type OrderStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'subject' | 'orgId' | 'input' | 'workflowId'>;

/**
 * The order of the machine. The machine's name is Drydock's id of the server, so that the machine can be found if the
 * answer to the order was lost.
 */
const orderOf = ({ subject, orgId, input: { spec, image, zone, sshKeys = [] } }: Omit<OrderStep, 'workflowId'>) => ({
  ...{ name: subject.id, spec, image, zone, sshKeys },
  labels: { 'managed-by': 'drydock', org: orgId },
});

/** The largest number of reads of a machine that is starting. They take about eight minutes. */
const readsMax = 50;

/** Makes a machine that runs. The machine of a failed order is deleted. */
export const orderServerWorkflow = defineWorkflow({ kind: 'order_server', input })
  .step('prepare', {
    run: async (step, context) => {
      const change = { kind: 'create', reference: step.workflowId, order: orderOf(step) } as const;
      return {
        checkpoint: await readForStep(
          driverOf(context, step, step.input.deployTarget).prepare(change, step.signal),
          step,
        ),
      };
    },
  })
  .step('create', {
    run: (step, context) => {
      const change = { kind: 'create', reference: step.workflowId, order: orderOf(step) } as const;
      const driver = driverOf(context, step, step.input.deployTarget);
      return sendOnce(context, step, { driver, change, checkpoint: step.outputs.prepare.checkpoint });
    },
    undo: (step, context) => {
      const machineId = step.outputs.create?.machineId ?? null;
      return discardMachine(context, step, driverOf(context, step, step.input.deployTarget), machineId);
    },
    commit: (tx, step, { machineId }) => recordMachine(tx, step.subject.id, machineId),
  })
  .step('follow', {
    weight: 4,
    run: (step, context) =>
      followChange(step, driverOf(context, step, step.input.deployTarget), step.outputs.create, 'create'),
  })
  .step('start', {
    run: (step, context) =>
      startMachine(
        step,
        driverOf(context, step, step.input.deployTarget),
        step.outputs.create.machineId,
        orderOf(step),
      ),
  })
  .step('observe', {
    run: async (step, context) => {
      const driver = driverOf(context, step, step.input.deployTarget);
      const machine = await readForStep(driver.readMachine(step.outputs.create.machineId, step.signal), step);
      if (machine?.powerState === 'on') return machine;
      if (step.attempt >= readsMax)
        throw fail('order_failed', { internal: `the machine is ${machine?.vendorStatus ?? 'gone'}` });
      throw retryLater({ seconds: pollSeconds(step.attempt) });
    },
    commit: async (tx, step, machine) => activateServer(tx, step.subject.id, machine, await databaseTime(tx)),
  })
  .onEnd({
    failed: async (tx, run, { code }) => {
      // A workflow that is abandoned after its last step leaves an active server, whose machine runs and belongs to the
      // customer.
      if ((await findServer(tx, run, run.subject.id))?.status !== 'active')
        await failServer(tx, run.subject.id, problems[code].title);
    },
  })
  .build();
