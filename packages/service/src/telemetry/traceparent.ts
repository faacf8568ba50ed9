import { type Attributes, context, isSpanContextValid, trace } from '@opentelemetry/api';
import { getRPCMetadata } from '@opentelemetry/core';

/** The W3C `traceparent` of the span that is active here, or undefined while tracing is off. Workflows carry it to their workers. */
export function currentTraceparent(): string | undefined {
  const span = trace.getActiveSpan()?.spanContext();
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`;
}

/** The server span of a request. */
export interface RequestSpan {
  /** Names it and its metrics by the path template, such as `/v1/sites/{siteId}`. */
  setRoute(path: string): void;
  setAttributes(attributes: Attributes): void;
}

/** That of the request whose listener is running, for what is known of it only later; undefined while tracing is off. */
export function currentRequestSpan(): RequestSpan | undefined {
  const span = trace.getActiveSpan();
  if (span === undefined) return undefined;
  const metadata = getRPCMetadata(context.active());
  return {
    setRoute: (path) => {
      // The instrumentation of HTTP reads it from here as the span ends.
      if (metadata !== undefined) metadata.route = path;
    },
    setAttributes: (attributes) => void span.setAttributes(attributes),
  };
}
