import { orderOf } from '@drydock/workflow/order';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { createDatabaseHead } from './create-database.head';
import { provision, serve, settleCreation } from './provision-database';
import { refOf, type WorkContext } from './work';

/** An instance of its own at an address that stays, and the weekly proof of its backups. */
export const createDatabaseWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(createDatabaseHead)
    .step('provision', {
      timeoutSeconds: 120,
      run: (step) => provision(context, step),
      undo: (step) => context.provider.destroy(refOf(step), orderOf(step)),
      commit: (tx, step, address) => serve(context, tx, step, address),
    })
    .onEnd(settleCreation(context))
    .build();
