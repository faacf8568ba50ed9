import { type AboutWorkflow, readHomeWorkflow, type WorkflowHome } from './workflow-home';

export const getWorkflow = <Tx, Name extends string>(home: WorkflowHome<Tx, Name>) => ({
  read: async (request: AboutWorkflow<Name>) => ({ status: 200 as const, body: (await readHomeWorkflow(home, request)).view }),
});
