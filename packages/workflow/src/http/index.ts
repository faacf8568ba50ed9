export {
  type Acceptance,
  type Asking,
  acceptWorkflow,
  assertAllowed,
  assertAllowedOn,
  assertFree,
  connectWorkflows,
  followHeaders,
  problemOf,
  readStartBy,
  startDecidedMs,
  startWithinSeconds,
  type WorkflowContext,
  type WorkTarget,
} from './accept-workflow';
export { runStaffCommand } from './staff-command';
export { composeWorkerProcess } from './worker-process';
export {
  abandonWorkflow,
  getWorkflow,
  listWorkflows,
  retryWorkflow,
  type WorkflowParent,
  watchWorkflow,
} from './workflow-endpoints';
