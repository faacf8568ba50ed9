import { isSpanContextValid, trace } from '@opentelemetry/api';

/** The W3C `traceparent` of the span that is active here, or undefined while tracing is off. Workflows carry it to their workers. */
export function currentTraceparent(): string | undefined {
  const span = trace.getActiveSpan()?.spanContext();
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`;
}
