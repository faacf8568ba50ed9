export { createLog, isKnownOutage, type Log } from './log';
export { secretsOf } from './redact';
export type { RequestTrace, RequestTraces } from './request-traces';
export { isFullDetail, routineAttribute, suppressTracing, traceForWork, withoutDetails, withoutSpans } from './spans';
export { beginTraces } from './telemetry';
