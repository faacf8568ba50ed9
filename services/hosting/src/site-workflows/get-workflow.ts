import type { HandlerContext } from '../context';
import { type AboutWorkflow, readHomeWorkflow, type WorkflowHome } from './workflow-home';

export const getWorkflow = <Name extends string>(context: HandlerContext, home: WorkflowHome<Name>) => ({
  read: async (request: AboutWorkflow<Name>) => ({ status: 200 as const, body: (await readHomeWorkflow(context, home, request)).view }),
});
