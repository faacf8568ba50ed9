import { context, createContextKey, isSpanContextValid, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';

/*
 * OpenTelemetry's current context carries the current span and the fields of log lines, also while telemetry is off.
 * Both share one AsyncLocalStorage, because each AsyncLocalStorage makes Node follow every promise and every socket.
 */
context.setGlobalContextManager(new AsyncLocalStorageContextManager());

/**
 * The fields of every log line of one request or one run of a workflow. They can be changed, because the organisation
 * is known only after the token was verified.
 */
export interface LogContext {
  request_id?: string;
  workflow_id?: string;
  org_id?: string;
  /** The id of the trace of a request, even if the request has no span. */
  trace_id?: string;
}

const key = createContextKey('drydock.log');

/** Runs `work`. Each line that is logged in it, however deep, has the fields of `fields`. */
export const withLogContext = <T>(fields: LogContext, work: () => T): T =>
  context.with(context.active().setValue(key, fields), work);

/** The fields of the line that is being logged. Within a span they include the ids of the span. */
export function currentLogFields(): LogContext & { span_id?: string } {
  const active = context.active();
  const fields = active.getValue(key) as LogContext | undefined;
  const span = trace.getSpanContext(active);
  if (span === undefined || !isSpanContextValid(span)) return { ...fields };
  return { ...fields, trace_id: span.traceId, span_id: span.spanId };
}
