export { remoteArchives } from './archive-channel';
export { admitFence, Changes, Ledger, refuseStale, rememberFence } from './changes';
export {
  type ChildJob,
  type NameProblem,
  type ProgramContext,
  runChildJob,
  runJobProgram,
  type StartedChild,
} from './child-job';
export { isDiskFull, JobProblem } from './job-protocol';
export { jobRoutesOf } from './job-routes';
export { type AnyJobKind, type JobContext, Jobs, jobKind } from './jobs';
