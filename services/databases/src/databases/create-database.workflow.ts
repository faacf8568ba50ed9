import { orderOf } from '@drydock/workflow/order';
import { removeSchedule, saveSchedule } from '@drydock/workflow/schedules';
import { fail } from '@drydock/workflow/step-error';
import { workflowsIn } from '@drydock/workflow/workflow';
import { verifyRestoreHead, verifyScheduleOf } from '../backups/verify-restore.head';
import { findSize } from '../catalogue/catalogue';
import type { Tx } from '../database.store';
import { createDatabaseHead } from './create-database.head';
import { changeStatus, recordAddress } from './database.store';
import { databaseResourceKey } from './database-names';
import { definitely } from './definite-failure';
import { refOf, type WorkContext } from './work';

/** An instance of its own at an address that stays, and the weekly proof of its backups. */
export const createDatabaseWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(createDatabaseHead)
    .step('provision', {
      timeoutSeconds: 120,
      do: async (step) => {
        const { major, databaseName, username, size: code } = step.input;
        const size = findSize(code);
        if (size === undefined) throw fail('size_not_offered');
        const { vcpu, ram_gb: ramGb, storage_gb: storageGb } = size;
        const spec = { major, databaseName, username, password: context.passwords(step.subject.id), size: { vcpu, ramGb, storageGb } };
        const { host, port } = await definitely(context.provider.create(refOf(step), spec, orderOf(step)));
        return { host, port };
      },
      undo: (step) => context.provider.destroy(refOf(step), orderOf(step)),
      commit: async (tx, step, address) => {
        const { id } = step.subject;
        await recordAddress(tx, id, address);
        await saveSchedule(context.database.sql(tx), {
          name: verifyScheduleOf(id),
          kind: verifyRestoreHead.kind,
          resourceKey: databaseResourceKey(id),
          subject: step.subject,
          orgId: step.orgId,
          mode: step.mode,
          input: {},
          rhythm: { intervalSeconds: context.verifyRestoreSeconds },
          firstRunAt: new Date(context.now().getTime() + context.verifyRestoreSeconds * 1_000),
        });
      },
    })
    .settle({
      failed: async (tx, run) => {
        await removeSchedule(context.database.sql(tx), verifyScheduleOf(run.subject.id));
        await changeStatus(tx, run.subject.id, 'failed', 'The database could not be created. Delete it and create another one.');
      },
    })
    .build();
