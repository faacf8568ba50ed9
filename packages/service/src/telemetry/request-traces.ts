import {
  isSpanContextValid,
  type Link,
  metrics,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { tracing } from '@opentelemetry/sdk-node';
import { readMethods, type SamplingOptions } from './sampling';

/*
 * The traces of customers' requests, where they begin. A library's span around each of them, with its context, would
 * cost the gateway more than the request itself. So only ids are drawn when a request comes, for the calls it makes and
 * for the answer; a span is made at its end, and only for requests that are sent.
 */

/** A request that has ended, in the form for traces and metrics. */
export interface EndedRequest {
  method: string;
  /** The path template, such as `/v1/sites/{siteId}`; undefined if the request had none. */
  route: string | undefined;
  /** Undefined if the client left before an answer began. */
  status: number | undefined;
  /** As `performance.now()` has it. */
  startedMs: number;
  endedMs: number;
  /** It lasted as long as its client stayed, so its length means nothing. */
  isStream: boolean;
  /** Read only when the request is sent. */
  attributes(): Record<string, string | undefined>;
}

export interface RequestTrace {
  /** 32 digits of hex; undefined where no traces are sent. */
  traceId: string | undefined;
  /** Its W3C form, for the calls it makes and for the answer. */
  traceparent: string | undefined;
  end(request: EndedRequest): void;
}

export interface RequestTraces {
  /** `traceparent`: the caller's own, as it came. The request's span links to it, but a trace of ours begins here. */
  begin(method: string, traceparent?: string): RequestTrace;
}

/**
 * The span that a `traceparent` of version 00 names, and those of later versions in their first four fields; none for
 * anything else.
 */
function linksTo(traceparent: string | undefined): Link[] {
  const [, traceId = '', spanId = '', flags = ''] =
    /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/.exec(traceparent ?? '') ?? [];
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(context) ? [{ context }] : [];
}

const hasFailed = (status = 0): boolean => status >= 500;
/** Seconds, as the semantic conventions have them. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/** Makes ids as the SDK does, except for a span whose ids were given out before it was made. */
export class ForetoldIds implements tracing.IdGenerator {
  private readonly random = new tracing.RandomIdGenerator();
  private foretold: { traceId: string; spanId: string } | null = null;

  generateTraceId = (): string => this.foretold?.traceId ?? this.random.generateTraceId();
  generateSpanId = (): string => this.foretold?.spanId ?? this.random.generateSpanId();

  /** Gives these ids to the span that `work` makes at once. */
  as<T>(ids: { traceId: string; spanId: string }, work: () => T): T {
    this.foretold = ids;
    try {
      return work();
    } finally {
      this.foretold = null;
    }
  }
}

/** `sampling`: null if no traces are sent, and requests are only counted. */
export function createRequestTraces(ids: ForetoldIds, sampling: SamplingOptions | null): RequestTraces {
  const tracer = trace.getTracer('@drydock/service');
  const duration = metrics.getMeter('@drydock/service').createHistogram('http.server.request.duration', {
    unit: 's',
    description: 'Duration of HTTP server requests.',
    advice: { explicitBucketBoundaries: bounds },
  });
  const count = ({ method, route, status, startedMs, endedMs }: EndedRequest): void =>
    duration.record((endedMs - startedMs) / 1_000, {
      'http.request.method': method,
      ...(status === undefined ? {} : { 'http.response.status_code': status }),
      ...(route === undefined ? {} : { 'http.route': route }),
    });
  if (sampling === null) return { begin: () => ({ traceId: undefined, traceparent: undefined, end: count }) };

  const send = (own: { traceId: string; spanId: string }, request: EndedRequest, callers: string | undefined): void => {
    const { method, route, status, startedMs, endedMs } = request;
    const attributes = { 'http.request.method': method, 'http.response.status_code': status, ...request.attributes() };
    const about = {
      kind: SpanKind.SERVER,
      startTime: startedMs,
      links: linksTo(callers),
      attributes: route === undefined ? attributes : { ...attributes, 'http.route': route },
    };
    const span = ids.as(own, () =>
      tracer.startSpan(route === undefined ? method : `${method} ${route}`, about, ROOT_CONTEXT),
    );
    if (hasFailed(status)) span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', String(status));
    span.end(endedMs);
  };
  return {
    begin: (method, callers) => {
      const own = { traceId: ids.generateTraceId(), spanId: ids.generateSpanId() };
      const isSent = !readMethods.has(method) || Math.random() < sampling.readShare;
      return {
        traceId: own.traceId,
        traceparent: `00-${own.traceId}-${own.spanId}-0${isSent ? 1 : 0}`,
        end: (request) => {
          count(request);
          const isSlow = !request.isStream && request.endedMs - request.startedMs > sampling.slowMs;
          if (isSent || isSlow || hasFailed(request.status)) send(own, request, callers);
        },
      };
    },
  };
}
