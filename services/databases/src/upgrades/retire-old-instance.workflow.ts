import { orderOf } from '@drydock/workflow/order';
import { removeSchedule } from '@drydock/workflow/schedules';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { definitely } from '../databases/definite-failure';
import { refOf, type WorkContext } from '../databases/work';
import { retireOldInstanceHead, retireScheduleOf } from './retire-old-instance.head';

/** A day after an upgrade the frozen old instance goes, and with it its schedule. */
export const retireOldInstanceWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(retireOldInstanceHead)
    .step('retire', {
      timeoutSeconds: 120,
      run: (step) => definitely(context.provider.retireOld(refOf(step), step.input, orderOf(step))),
      commit: (tx, step) => removeSchedule(context.database.sql(tx), retireScheduleOf(step.subject.id)),
    })
    .build();
