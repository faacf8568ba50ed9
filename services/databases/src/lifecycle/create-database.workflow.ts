import { majorSchema } from '@drydock/contracts/databases/major';
import { type EndHooks, fail, fencedCall, type StepContext, type WorkflowRun } from '@drydock/workflow/definition';
import { removeSchedule, saveSchedule } from '@drydock/workflow/store';
import { z } from 'zod';
import { verifyRestoreWorkflow, verifyScheduleOf } from '../backups/verify-restore.workflow';
import { findSize } from '../catalogue/catalogue';
import { defineWorkflow, refOf, type WorkContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { changeStatus, recordAddress } from '../databases/database.store';
import { databaseResourceKey } from '../databases/database.types';
import { definitely } from '../providers/database-errors';

export const newDatabaseSchema = z.strictObject({
  major: majorSchema,
  /** The code of the size in the catalogue. */
  size: z.string(),
  databaseName: z.string(),
  username: z.string(),
  /**
   * The name of the secret that the password is derived from. It is set only if the service's secret was being rotated
   * when the request was accepted.
   */
  passwordMadeWith: z.string().optional(),
});
type NewDatabase = z.infer<typeof newDatabaseSchema>;

interface Address {
  host: string;
  port: number;
}

/** Makes an instance with an empty database at an address that never changes. */
export async function provision(context: WorkContext, step: StepContext<NewDatabase, unknown>): Promise<Address> {
  const { major, databaseName, username, size: code, passwordMadeWith } = step.input;
  const size = findSize(code);
  if (size === undefined) throw fail('size_not_offered');
  const { vcpu, ram_gb: ramGb, storage_gb: storageGb } = size;
  const password = context.passwords.of(step.subject.id, passwordMadeWith);
  const spec = { major, databaseName, username, password, size: { vcpu, ramGb, storageGb } };
  const { host, port } = await definitely(context.provider.create(refOf(step), spec, fencedCall(step)));
  return { host, port };
}

/** Publishes the address of the new database, and schedules the regular restore that proves its backups. */
export async function serve(context: WorkContext, tx: Tx, run: WorkflowRun<unknown>, address: Address): Promise<void> {
  const { id } = run.subject;
  await recordAddress(tx, id, address);
  await saveSchedule(context.database.sql(tx), {
    name: verifyScheduleOf(id),
    kind: verifyRestoreWorkflow.kind,
    resourceKey: databaseResourceKey(id),
    subject: run.subject,
    orgId: run.orgId,
    mode: run.mode,
    input: {},
    interval: { intervalSeconds: context.verifyRestoreSeconds },
    firstRunAt: new Date(context.now().getTime() + context.verifyRestoreSeconds * 1_000),
  });
}

/**
 * A database becomes `available` only when its creation has ended. Until then the creation locks the database, and a
 * backup or an upgrade, for example, is refused with `operation_in_progress`. A database that could not be created
 * becomes `failed` and can be deleted.
 */
export const endCreation: EndHooks<WorkContext, Tx, unknown> = {
  succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'available'),
  failed: async (tx, run, _problem, context) => {
    await removeSchedule(context.database.sql(tx), verifyScheduleOf(run.subject.id));
    await changeStatus(
      tx,
      run.subject.id,
      'failed',
      'The database could not be created. Delete it and create another one.',
    );
  },
};

export const createDatabaseWorkflow = defineWorkflow({
  kind: 'create_database',
  input: newDatabaseSchema,
})
  .step('provision', {
    timeoutSeconds: 120,
    run: (step, context) => provision(context, step),
    undo: (step, context) => context.provider.destroy(refOf(step), fencedCall(step)),
    commit: (tx, step, address, context) => serve(context, tx, step, address),
  })
  .onEnd(endCreation)
  .build();
