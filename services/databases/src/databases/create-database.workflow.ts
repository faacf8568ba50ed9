import { fencedCall } from '@drydock/workflow/definition/definition';
import { endCreation, newDatabaseSchema, provision, serve } from './provision-database';
import { defineWorkflow, refOf } from './work';

/** Makes an instance at an address that never changes, and schedules the weekly proof of its backups. */
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
