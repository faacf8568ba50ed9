import { workflowsFor } from '../definition';

/** Workflows of the tests: their steps close over what they need, and their hooks write nothing. */
export const workflow = workflowsFor<unknown, unknown>();
