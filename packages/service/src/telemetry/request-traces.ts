import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  type Attributes,
  type Context,
  context,
  type HrTime,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  TraceFlags,
  trace,
  ValueType,
} from '@opentelemetry/api';
import { hrTime } from '@opentelemetry/core';
import { emptyResource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { tracing } from '@opentelemetry/sdk-node';
import { readMethods, type SamplingOptions } from './sampling';
import { traceparentOf } from './spans';

/*
 * The traces of customers' requests, which begin in the gateway. When a request arrives, it gets only ids, for the
 * calls that it causes and for the answer. Its span is made when it ends, and only if the span is sent. A library's
 * span around each request would cost the gateway more than the request itself.
 * A service does the same with a read whose trace the gateway does not send to the collector. The spans of libraries
 * would cost a service an eighth of its processor time, and nearly all of them would be dropped.
 */

/** A request that has ended, as traces and metrics need it. */
export interface EndedRequest {
  method: string;
  /** The path template, such as `/v1/sites/{siteId}`; undefined if the request had none. */
  route: string | undefined;
  /** Undefined if the client left before an answer began. */
  status: number | undefined;
  /** The time on the monotonic clock at which the request began. */
  startedMs: number;
  endedMs: number;
  /** Whether it was an event stream. A stream lasts as long as its client stays, so its duration means nothing. */
  isStream: boolean;
  /** Called only if the request has a span. */
  attributes(): Record<string, string | undefined>;
}

export interface RequestTrace {
  /** The id of the trace, 32 hex digits; undefined if no traces are sent. */
  traceId: string | undefined;
  /** The W3C `traceparent`, for the calls that the request causes and for the answer. */
  traceparent: string | undefined;
  end(request: EndedRequest): void;
}

export interface RequestTraces {
  /**
   * Begins the trace of a request. `traceparent` is the caller's own, as it was sent. The request's span links to it,
   * but belongs to a new trace.
   */
  begin(method: string, traceparent?: string): RequestTrace;
}

export interface ContinuedTrace extends RequestTrace {
  /** Runs the work of the request, within the request's span if there is one already. */
  run<T>(work: () => T): T;
}

export interface ContinuedTraces {
  /** Continues the trace of a request. `route` is its path template. */
  continue(request: Pick<IncomingMessage, 'method' | 'headers' | 'url'>, route: string | undefined): ContinuedTrace;
}

/** Parses the first four fields of a `traceparent` of any version. Returns undefined if one of them is malformed. */
function parseTraceparent(traceparent: unknown): SpanContext | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, traceId, spanId, flags] = wellFormed.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

/** Matches a valid `traceparent`. An id of zeros alone and the version `ff` are invalid. */
const wellFormed = /^(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

function linksTo(traceparent: string | undefined): Link[] {
  const context = parseTraceparent(traceparent);
  return context === undefined ? [] : [{ context }];
}

const hasFailed = (status = 0): boolean => status >= 500;
/** The bounds of the histogram in seconds, as in the semantic conventions. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

interface Series {
  attributes: Attributes;
  /** The sum of the durations in seconds. */
  sum: number;
  /** The counts, one for each bound, and one for values above the last bound. */
  counts: number[];
}

/**
 * The histogram `http.server.request.duration`, by method, route and status. The histogram of the SDK would sort and
 * hash the attributes of each request, at a cost of 5 % of the gateway's work for a request.
 */
export class RequestDurations implements MetricProducer {
  /**
   * Three nested maps, by route, method and status. A single key that joins route, method and status would cost five
   * times as much as the three look-ups.
   */
  private readonly routes = new Map<EndedRequest['route'], Map<string, Map<EndedRequest['status'], Series>>>();
  private readonly all: Series[] = [];
  private readonly startTime: HrTime = hrTime();

  record(request: EndedRequest): void {
    const { method, route, status, startedMs, endedMs } = request;
    const series = this.routes.get(route)?.get(method)?.get(status) ?? this.begin(request);
    const seconds = (endedMs - startedMs) / 1_000;
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1;
    series.sum += seconds;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
  }

  private begin({ method, route, status }: EndedRequest): Series {
    const attributes = {
      'http.request.method': method,
      ...(status === undefined ? {} : { 'http.response.status_code': status }),
      ...(route === undefined ? {} : { 'http.route': route }),
    };
    const series: Series = { attributes, sum: 0, counts: Array.from({ length: bounds.length + 1 }, () => 0) };
    const methods = this.routes.get(route) ?? new Map<string, Map<EndedRequest['status'], Series>>();
    const statuses = methods.get(method) ?? new Map<EndedRequest['status'], Series>();
    this.routes.set(route, methods.set(method, statuses.set(status, series)));
    this.all.push(series);
    return series;
  }

  /** The counts since the process started. */
  async collect(): Promise<CollectionResult> {
    const endTime = hrTime();
    const dataPoints = this.all.map(({ attributes, sum, counts }): DataPoint<Histogram> => {
      const count = counts.reduce((total, each) => total + each, 0);
      const value = { sum, count, buckets: { boundaries: bounds, counts: [...counts] } };
      return { attributes, startTime: this.startTime, endTime, value };
    });
    const metric = {
      descriptor: {
        name: 'http.server.request.duration',
        description: 'Duration of HTTP server requests.',
        unit: 's',
        valueType: ValueType.DOUBLE,
      },
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
      dataPointType: DataPointType.HISTOGRAM as const,
      dataPoints,
    };
    const scopeMetrics = dataPoints.length === 0 ? [] : [{ scope: { name: '@drydock/service' }, metrics: [metric] }];
    return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] };
  }
}

/** Makes random ids. A span whose ids were given out before the span was made gets those ids. */
export class ForetoldIds implements tracing.IdGenerator {
  private foretold: { traceId: string; spanId: string } | null = null;
  /**
   * Random hex digits for the next ids. Many are drawn at a time, because a call for each id costs as much as the rest
   * of a request's trace.
   */
  private random = '';
  private used = 0;

  generateTraceId = (): string => this.foretold?.traceId ?? this.draw(32);
  generateSpanId = (): string => this.foretold?.spanId ?? this.draw(16);

  private draw(digits: number): string {
    if (this.used + digits > this.random.length) {
      this.random = randomBytes(4_096).toString('hex');
      this.used = 0;
    }
    this.used += digits;
    return this.random.slice(this.used - digits, this.used);
  }

  /** Runs `work`, which makes one span. The span gets these ids. */
  as<T>(ids: { traceId: string; spanId: string }, work: () => T): T {
    this.foretold = ids;
    try {
      return work();
    } finally {
      this.foretold = null;
    }
  }
}

/**
 * The most reads in a second that are chosen at random to be sent, if `readShare` is below 1. More traces show nothing
 * new, and each costs half as much as a request.
 */
const drawnMax = 50;

/** Makes a function that decides at random whether a read is sent. */
function createDraw(share: number): () => boolean {
  let [second, drawn] = [0, 0];
  return () => {
    if (Math.random() >= share) return false;
    const now = Math.floor(performance.now() / 1_000);
    if (now !== second) [second, drawn] = [now, 0];
    drawn += 1;
    return drawn <= drawnMax || share >= 1;
  };
}

/** Whether a request is sent although it was not chosen at random. */
const isWorthSending = ({ status, startedMs, endedMs, isStream }: EndedRequest, slowMs: number): boolean =>
  hasFailed(status) || (!isStream && endedMs - startedMs > slowMs);

function beginSpan(
  { method, route, ...times }: Pick<EndedRequest, 'method' | 'route'> & { startedMs?: number },
  parent: Context,
  { links, attributes }: { links?: Link[]; attributes?: Attributes } = {},
): Span {
  const own = { 'http.request.method': method, ...(route === undefined ? {} : { 'http.route': route }) };
  const name = route === undefined ? method : `${method} ${route}`;
  const options: SpanOptions = { kind: SpanKind.SERVER, attributes: { ...own, ...attributes } };
  if (links !== undefined) options.links = links;
  if (times.startedMs !== undefined) options.startTime = times.startedMs;
  return trace.getTracer('@drydock/service').startSpan(name, options, parent);
}

function endSpan(span: Span, { status, endedMs, attributes }: EndedRequest): void {
  if (status !== undefined) span.setAttribute('http.response.status_code', status);
  for (const [name, value] of Object.entries(attributes())) if (value !== undefined) span.setAttribute(name, value);
  if (hasFailed(status)) span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', String(status));
  span.end(endedMs);
}

/** Makes the traces of requests. `sampling` is null if no traces are sent; requests are then only counted. */
export function createRequestTraces(
  ids: ForetoldIds,
  durations: RequestDurations,
  sampling: SamplingOptions | null,
): RequestTraces {
  const isDrawn = createDraw(sampling?.readShare ?? 0);
  if (sampling === null) {
    const counted = {
      traceId: undefined,
      traceparent: undefined,
      end: (request: EndedRequest) => durations.record(request),
    };
    return { begin: () => counted };
  }

  return {
    begin: (method, callers) => {
      const own = { traceId: ids.generateTraceId(), spanId: ids.generateSpanId() };
      const isSent = !readMethods.has(method) || isDrawn();
      return {
        traceId: own.traceId,
        traceparent: `00-${own.traceId}-${own.spanId}-0${isSent ? 1 : 0}`,
        end: (request) => {
          durations.record(request);
          if (isSent || isWorthSending(request, sampling.slowMs))
            endSpan(
              ids.as(own, () => beginSpan(request, ROOT_CONTEXT, { links: linksTo(callers) })),
              request,
            );
        },
      };
    },
  };
}

/**
 * Makes the traces of a service's requests, which the gateway has begun. With `isFull` every request has its span while
 * it runs.
 */
export function createContinuedTraces(
  durations: RequestDurations,
  { slowMs, isFull }: { slowMs: number; isFull: boolean },
): ContinuedTraces {
  return {
    continue: ({ method = '', headers, url }, route) => {
      const parent = parseTraceparent(headers['traceparent']);
      const isSent = parent === undefined || (parent.traceFlags & TraceFlags.SAMPLED) !== 0 || !readMethods.has(method);
      if (isSent || isFull) {
        const within = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
        const span = beginSpan({ method, route }, within, { attributes: { 'url.path': url?.split('?', 1)[0] } });
        return {
          traceId: span.spanContext().traceId,
          traceparent: traceparentOf(span.spanContext()),
          run: (work) => context.with(trace.setSpan(context.active(), span), work),
          end: (request) => {
            durations.record(request);
            endSpan(span, request);
          },
        };
      }
      return {
        traceId: parent.traceId,
        traceparent: traceparentOf(parent),
        run: (work) => work(),
        end: (request) => {
          durations.record(request);
          if (!isWorthSending(request, slowMs)) return;
          // The span is marked as sampled, because a span without the mark is dropped.
          const sampled = trace.setSpanContext(ROOT_CONTEXT, { ...parent, traceFlags: TraceFlags.SAMPLED });
          endSpan(beginSpan(request, sampled), request);
        },
      };
    },
  };
}
