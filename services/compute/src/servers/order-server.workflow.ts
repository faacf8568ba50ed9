import { problems } from '@drydock/contracts/platform/problems';
import type { StepContext } from '@drydock/workflow/definition/definition';
import { fail, retryLater } from '@drydock/workflow/definition/step-error';
import { z } from 'zod';
import { followChange } from '../changes/follow-change';
import { lookedAt, pollSeconds } from '../changes/provider-failure';
import { sendOnce } from '../changes/send-once';
import { discardMachine } from './discard-machine';
import { activateServer, databaseTime, failServer, findServer, recordMachine } from './server.store';
import { startMachine } from './start-machine';
import { defineWorkflow, driverOf } from './work';

const input = z.strictObject({ deployTarget: z.string(), spec: z.string(), image: z.string(), zone: z.string() });

type OrderStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'subject' | 'orgId' | 'input' | 'workflowId'>;

/** The machine has our id as its name, so that it can be found if the answer to its order was lost. */
export const orderOf = ({ subject, orgId, input: { spec, image, zone } }: Omit<OrderStep, 'workflowId'>) => ({
  ...{ name: subject.id, spec, image, zone },
  labels: { 'managed-by': 'drydock', org: orgId },
});

/** The most looks until a machine must be up after its start: about eight minutes. */
const looksMax = 50;

/** Makes a machine that runs, or none: the machine of a failed order is deleted again. */
export const orderServerWorkflow = defineWorkflow({ kind: 'order_server', input })
  .step('prepare', {
    run: async (step, context) => {
      const change = { kind: 'create', reference: step.workflowId, order: orderOf(step) } as const;
      return {
        checkpoint: await lookedAt(driverOf(context, step, step.input.deployTarget).prepare(change, step.signal), step),
      };
    },
  })
  .step('create', {
    run: (step, context) => {
      const change = { kind: 'create', reference: step.workflowId, order: orderOf(step) } as const;
      const driver = driverOf(context, step, step.input.deployTarget);
      return sendOnce(context, step, { driver, change, checkpoint: step.outputs.prepare.checkpoint });
    },
    undo: (step, context) => discardMachine(context, step, driverOf(context, step, step.input.deployTarget)),
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
      const machine = await lookedAt(driver.readMachine(step.outputs.create.machineId, step.signal), step);
      if (machine?.powerState === 'on') return machine;
      if (step.attempt >= looksMax)
        throw fail('order_failed', { internal: `the machine is ${machine?.vendorStatus ?? 'gone'}` });
      throw retryLater({ seconds: pollSeconds(step.attempt) });
    },
    commit: async (tx, step, machine) => activateServer(tx, step.subject.id, machine, await databaseTime(tx)),
  })
  .onEnd({
    failed: async (tx, run, { code }) => {
      // The workflow was abandoned after its last step, so the machine runs and is the customer's.
      if ((await findServer(tx, run, run.subject.id))?.status !== 'active')
        await failServer(tx, run.subject.id, problems[code].title);
    },
  })
  .build();
