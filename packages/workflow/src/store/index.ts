export type { StepRow } from './claim.types';
export { createListener } from './listener';
export { forgetRuns, purgeWorkflows } from './purge-workflows';
export { readWorkflowById } from './read-workflow';
export { removeSchedule, runDueSchedules, type Schedule, saveSchedule } from './schedules';
export { cancelUnclaimed, findUnfinished, startWorkflow, type WorkflowStart } from './start-workflow';
export { type StepWaited, waitForStep, watchWorkflow } from './watch-workflow';
