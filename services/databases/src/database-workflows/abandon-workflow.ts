import type { abandonDatabaseWorkflow as endpoint } from '@drydock/contracts/database-workflows';
import type { ActHandlers } from '@drydock/service-kit/route';
import { abandonWorkflow as apply } from '@drydock/workflow/attention';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { decideWorkflow } from './decide-workflow';

export const abandonWorkflow = (context: HandlerContext) =>
  ({
    act: (tx: Tx, request) => decideWorkflow(context, tx, request, { action: 'workflow.abandon', apply }),
  }) satisfies ActHandlers<typeof endpoint, Tx, undefined>;
