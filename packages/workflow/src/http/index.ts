export {
  type Acceptance,
  type Asking,
  acceptWorkflow,
  assertAllowed,
  assertAllowedOn,
  assertFree,
  followHeaders,
  problemOf,
  readStartBy,
  startDecidedMs,
  startWithinSeconds,
  type WorkTarget,
} from './accept-workflow';
export { runStaffCommand } from './staff-command';
export { composeWorkerProcess } from './worker-process';
export { connectWorkflows, type WorkflowContext } from './workflow-context';
export {
  abandonWorkflow,
  getWorkflow,
  listWorkflows,
  retryWorkflow,
  type WorkflowParent,
  watchWorkflow,
} from './workflow-endpoints';
