import { workflowsFor } from './definition';

export const workflowsIn = <Tx>() => workflowsFor<unknown, Tx>();
