import type { StepContext } from '@drydock/workflow/definition';
import { forgetRuns, saveSchedule } from '@drydock/workflow/store';
import { z } from 'zod';
import { readForStep } from '../changes/provider-failure';
import { forgetSends } from '../changes/provider-send.store';
import { defineWorkflow, driverOf } from '../context/context';
import type { ComputeDatabase } from '../context/database.store';
import type { Machine } from '../providers/compute.types';
import { type ComputeDriver, ComputeError, type Targets } from '../providers/compute-provider';
import {
  applySeen,
  applyVanished,
  databaseTime,
  listExpected,
  removeOtherSchedules,
  type SeenMachine,
} from './server.store';

/**
 * Brings the servers of one target in one mode up to date with the provider. A server that another workflow works on is
 * left out.
 */
export const reconcileServersWorkflow = defineWorkflow({
  kind: 'reconcile_servers',
  input: z.strictObject({ deployTarget: z.string() }),
  isRoutine: true,
})
  .step('compare', {
    run: async (step, context) => {
      const { pool } = context.database;
      const { deployTarget } = step.input;
      const driver = driverOf(context, step, deployTarget);
      const listedAt = await databaseTime(pool);
      const seen = (await readForStep(driver.listMachines(step.signal), step)).map(seenOf);
      const ids = new Set(seen.map(({ machineId }) => machineId));
      const missing = (await listExpected(pool, { mode: step.mode, deployTarget }, listedAt)).filter(
        (machineId) => !ids.has(machineId),
      );
      return { listedAt: listedAt.toISOString(), seen, vanished: await confirmMissing(step, driver, missing) };
    },
    commit: async (tx, step, { listedAt, seen, vanished }, context) => {
      const range = { mode: step.mode, deployTarget: step.input.deployTarget };
      await applySeen(tx, range, seen, listedAt);
      for (const serverId of await applyVanished(tx, range, vanished, listedAt))
        step.log.error({ alarm: 'machine_vanished', server_id: serverId }, 'the provider no longer knows a machine');
      await forgetRuns(context.database.sql(tx), 'reconcile_servers');
      await forgetSends(context.database.sql(tx));
    },
  })
  .build();

const seenOf = ({ id, name, vendorStatus, powerState, addresses, spec }: Machine): SeenMachine => ({
  ...{ machineId: id, name, vendorStatus, powerState, spec },
  addresses: [...addresses],
});

/**
 * The greatest number of missing machines that are read one by one in a run. A listing may miss a machine for a
 * moment, so each missing machine is read separately. Further missing machines wait for the next run.
 */
const confirmedMax = 20;

async function confirmMissing(
  step: Pick<StepContext<unknown, unknown>, 'log' | 'signal'>,
  driver: ComputeDriver,
  machineIds: readonly string[],
): Promise<string[]> {
  const gone: string[] = [];
  for (const machineId of machineIds.slice(0, confirmedMax)) {
    try {
      if ((await driver.readMachine(machineId, step.signal)) === null) gone.push(machineId);
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error;
      // It is unknown whether this machine is gone, so its record does not change. The other missing machines are still
      // recorded.
      step.log.warn({ machine_id: machineId, internal: error.message }, 'a machine cannot be asked about');
    }
  }
  return gone;
}

/** The organisation of Drydock's own workflows. It is no customer. */
const platformOrgId = '00000000-0000-0000-0000-000000000000';

const modes = ['live', 'sandbox'] as const;

/**
 * Schedules a reconciliation of each configured target, once in `seconds` seconds. Removes the schedules of targets
 * that are not configured any more.
 */
export async function scheduleReconciliation(
  database: ComputeDatabase,
  targets: Targets<unknown>,
  seconds: number,
): Promise<void> {
  const ranges = modes.flatMap((mode) => [...targets[mode].keys()].map((deployTarget) => ({ mode, deployTarget })));
  const nameOf = ({ mode, deployTarget }: (typeof ranges)[number]): string =>
    `${reconcileServersWorkflow.kind}:${mode}:${deployTarget}`;
  await database.transaction(async (tx) => {
    const sql = database.sql(tx);
    for (const range of ranges) {
      const { mode, deployTarget } = range;
      await saveSchedule(sql, {
        name: nameOf(range),
        kind: reconcileServersWorkflow.kind,
        resourceKey: nameOf(range),
        subject: { type: 'deploy_target', id: deployTarget },
        orgId: platformOrgId,
        mode,
        input: { deployTarget },
        interval: { intervalSeconds: seconds },
      });
    }
    await removeOtherSchedules(sql, ranges.map(nameOf));
  });
}
