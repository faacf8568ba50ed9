export { answerOfProblem, answerWithinMs, keyChallenge, problemOfError } from './answer';
export { changeMetadata } from './change-metadata';
export { entityTagOf, hasAlready } from './entity-tag';
export { answerHealth, answerReady, createHealthServer, type Mounted } from './health';
export { closeServer, createHttpServer, inTurn, listen } from './http-server';
export { assertJsonContentType, readBody } from './json-body';
export { assertWithinQuota, getQuota, type QuotaRule, setQuota } from './org-quota';
export { createPager, limitLengthMax, listFilter, type Page, type PageRequest, type Pager } from './paging';
export { queryParser } from './parse-request';
export {
  type AwaitHandlers,
  type ExecuteHandlers,
  type HandlerRequest,
  type InternalRoute,
  internalRoute,
  type ReadHandlers,
  type ReplaySecret,
  type Route,
  route,
  type StreamEvent,
  type StreamHandlers,
} from './route';
export { type ApiProcess, composeApiProcess } from './service';
export { type StreamLimits, streamLimits, streamShares } from './stream';
