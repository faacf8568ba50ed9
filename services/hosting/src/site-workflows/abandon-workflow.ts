import { abandonWorkflow as apply } from '@drydock/workflow/attention';
import type { HandlerContext } from '../context';
import { decideWorkflow } from './decide-workflow';
import type { WorkflowHome } from './workflow-home';

export const abandonWorkflow = <Name extends string>(context: HandlerContext, home: WorkflowHome<Name>) =>
  decideWorkflow(context, home, { action: 'workflow.abandon', apply });
