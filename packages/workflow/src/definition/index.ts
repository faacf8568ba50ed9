export {
  type ArchiveKind,
  archiveErrorIn,
  archiveErrorOfJob,
  archiveFailure,
  type ContentReason,
  type FailureReason,
  isFinal,
} from './archive-failures';
export {
  type EndHooks,
  type FencedCall,
  type FencedCallWithProgress,
  fencedCall,
  type Log,
  type StepContext,
  type WorkflowBuilder,
  type WorkflowDefinition,
  type WorkflowRun,
  workflowsFor,
} from './definition';
export { isInProgress, type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from './refusal.rules';
export {
  conclude,
  fail,
  LeaseLost,
  messageOf,
  retryLater,
  StepFailure,
  StepTimeout,
  StepWait,
  shortReason,
} from './step-error';
