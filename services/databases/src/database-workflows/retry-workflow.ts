import type { retryDatabaseWorkflow as endpoint } from '@drydock/contracts/database-workflows';
import type { ActHandlers } from '@drydock/service-kit/route';
import { retryWorkflow as apply } from '@drydock/workflow/attention';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { decideWorkflow } from './decide-workflow';

export const retryWorkflow = (context: HandlerContext) =>
  ({
    act: (tx: Tx, request) => decideWorkflow(context, tx, request, { action: 'workflow.retry', apply }),
  }) satisfies ActHandlers<typeof endpoint, Tx, undefined>;
