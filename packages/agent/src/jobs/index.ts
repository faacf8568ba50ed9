export { remoteArchives } from './archive-channel';
export { admitFence, Changes, Ledger, refuseStale, rememberFence } from './changes';
export { type ChildJob, runChildJob, type StartedChild } from './child-job';
export { FairPlaces } from './fair-places';
export { type NameProblem, type ProgramContext, runJobProgram } from './job-program';
export { isDiskFull, JobProblem } from './job-protocol';
export { jobRoutesOf } from './job-routes';
export { type AnyJobKind, type JobContext, Jobs, jobKind } from './jobs';
