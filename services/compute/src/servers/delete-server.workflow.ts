import { powerStateSchema, serverStatusSchema } from '@drydock/contracts/compute/compute-servers';
import { conclude, fail, retryLater, type StepContext, StepFailure } from '@drydock/workflow/definition';
import { z } from 'zod';
import { carryOutDeletion, followChange, retryCleanUp, type Step, sendOnce } from '../changes/provider-change';
import { pollSeconds, readForStep } from '../changes/provider-failure';
import { defineWorkflow, driverOf } from '../context/context';
import type { Accepted } from '../providers/compute.types';
import type { ComputeDriver } from '../providers/compute-provider';
import { isAnothers, sandboxBehaviour } from './server.rules';
import { findServer, keepServer, terminateServer } from './server.store';

const input = z.strictObject({
  deployTarget: z.string(),
  /** Null if the order failed before the provider returned an id. Then the machine is searched for by its name. */
  machineId: z.string().nullable(),
  /** The server's state when the deletion was accepted. It is restored if nothing was deleted. */
  before: z.strictObject({
    status: serverStatusSchema,
    message: z.string(),
    operable: z.boolean(),
    powerState: powerStateSchema,
  }),
});

type DeleteStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'subject' | 'workflowId'>;

const changeOf = ({ subject, workflowId }: DeleteStep, machineId: string) =>
  ({ kind: 'delete', reference: workflowId, machineId, name: subject.id }) as const;

const nothingSent: Accepted = { actionId: null, machineId: '', snapshotId: null };
/**
 * The largest number of reads of the machine after its deletion has ended. They take about eight minutes. If the
 * provider still knows the machine then, the workflow waits for staff.
 */
const readsMax = 50;

/**
 * Deletes the machine first, because a refusal then leaves everything as it was. The server is gone as soon as the
 * machine is gone. Afterwards the snapshots that the provider keeps separately are deleted, because nobody can reach
 * the snapshots of a deleted server.
 */
export const deleteServerWorkflow = defineWorkflow({ kind: 'delete_server', input })
  .step('prepare', {
    run: async (step, context) => {
      const server = await findServer(context.database.pool, step, step.subject.id);
      if (server === null) throw conclude('server_not_operable', { internal: 'the server is gone' });
      const { failsDeletion, isSlow } = sandboxBehaviour(server);
      const driver = driverOf(context, step, step.input.deployTarget);
      const { machineId } = step.input;
      const machine = await readForStep(
        machineId === null ? driver.findMachine(server.id, step.signal) : driver.readMachine(machineId, step.signal),
        step,
      );
      const plan = { failsDeletion, endsNotBeforeMs: isSlow ? context.now().getTime() + context.slowMs : 0 };
      if (machine === null) return { ...plan, target: null, snapshotsOf: machineId };
      if (isAnothers(machine, server)) return { ...plan, target: null, snapshotsOf: null };
      const checkpoint = await readForStep(driver.prepare(changeOf(step, machine.id), step.signal), step);
      return { ...plan, target: { machineId: machine.id, checkpoint }, snapshotsOf: machine.id };
    },
  })
  .pointOfNoReturn()
  .step('send', {
    run: async (step, context) => {
      const { target, failsDeletion } = step.outputs.prepare;
      if (failsDeletion) throw conclude('deletion_failed', { internal: 'as the name of the sandbox server asks' });
      if (target === null) return nothingSent;
      const { machineId, checkpoint } = target;
      const driver = driverOf(context, step, step.input.deployTarget);
      return sendOnce(context, step, { driver, change: changeOf(step, machineId), checkpoint });
    },
  })
  .step('follow', {
    weight: 4,
    run: async (step, context) => {
      await followChange(step, driverOf(context, step, step.input.deployTarget), step.outputs.send, 'delete');
      const leftMs = step.outputs.prepare.endsNotBeforeMs - context.now().getTime();
      if (leftMs > 0) throw retryLater({ seconds: leftMs / 1_000 });
    },
  })
  .step('confirm', {
    run: async (step, context) => {
      const { target } = step.outputs.prepare;
      if (target === null) return;
      const driver = driverOf(context, step, step.input.deployTarget);
      const machine = await readForStep(driver.readMachine(target.machineId, step.signal), step);
      if (machine === null) return;
      if (step.attempt >= readsMax)
        throw fail('step_failed', { internal: `machine ${machine.id} is ${machine.vendorStatus}` });
      throw retryLater({ seconds: pollSeconds(step.attempt) });
    },
    commit: (tx, step) => terminateServer(tx, step.subject.id),
  })
  .step('discard_snapshots', {
    run: async (step, context) => {
      const { snapshotsOf } = step.outputs.prepare;
      if (snapshotsOf !== null)
        await discardSnapshots(step, driverOf(context, step, step.input.deployTarget), snapshotsOf);
    },
  })
  .onEnd({ failed: (tx, run) => keepServer(tx, run.subject.id, run.input.before) })
  .build();

/** The most snapshots that one attempt deletes. The deletion of more could take longer than an attempt may. */
const deletionsMax = 10;

/**
 * Deletes the snapshots that the provider keeps separately from the machine. Snapshots that the provider keeps in the
 * machine are already gone. A refused deletion waits for staff, because the snapshot holds the customer's data. The
 * step is repeated until no snapshot is listed. These repeats do not count as failed attempts.
 */
async function discardSnapshots(step: Step, driver: ComputeDriver, machineId: string): Promise<void> {
  const snapshots = await readForStep(driver.listSnapshots(machineId, step.signal), step);
  for (const { id: snapshotId } of snapshots.slice(0, deletionsMax)) {
    const deletion = { kind: 'delete_snapshot', reference: step.workflowId, machineId, snapshotId } as const;
    await carryOutDeletion(step, driver, deletion).catch((error: unknown) => {
      throw error instanceof StepFailure ? fail(error.problem.code, { internal: error.message, cause: error }) : error;
    });
  }
  // A listing may lack a snapshot if another one is deleted meanwhile. So only an empty listing ends the step.
  if (snapshots.length > 0) throw retryCleanUp();
}
