import {
  type Attributes,
  context,
  type HrTime,
  isSpanContextValid,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { suppressTracing } from '@opentelemetry/core';

/** Records every span: each layer of a statement, each look at a queue. For close inspection; TRACE_DETAIL=full. */
export const isFullDetail = process.env['TRACE_DETAIL'] === 'full';

/** An attribute of a request's span that lasts as long as its client stays, so that its length means nothing. */
export const streamAttribute = 'drydock.stream';

/**
 * An attribute that is true on the first span of work that the clock begins all the time. Such work is sampled like
 * reads.
 */
export const routineAttribute = 'drydock.routine';

export { suppressTracing };

/** Runs `work` without spans. It is for polls, whose spans would bury all others. */
export const withoutSpans = <T>(work: () => T): T =>
  isFullDetail ? work() : context.with(suppressTracing(context.active()), work);

let isForWork = false;

/**
 * Tells the sampling that this process is a worker or an agent. Call it once, at its start. Readers of a trace look for
 * the steps of work, and each step has dozens of statements and reads. At default detail only those that failed or were
 * slow are sent.
 */
export const traceForWork = (): void => {
  isForWork = true;
};

/** A detail that takes longer is slow. */
const slowDetailMs = 100;

/**
 * Whether a span adds nothing to the span around it: a statement or a read that succeeded quickly, in a worker or an
 * agent.
 */
export function isQuickDetail({ kind, status, attributes, duration: [seconds, nanoseconds] }: EndedSpan): boolean {
  const isRead = attributes['http.request.method'] === 'GET' || attributes['http.request.method'] === 'HEAD';
  const isDetail =
    attributes['db.query.text'] !== undefined || (isRead && (kind === SpanKind.CLIENT || kind === SpanKind.SERVER));
  return (
    isForWork &&
    !isFullDetail &&
    isDetail &&
    status.code !== SpanStatusCode.ERROR &&
    seconds * 1_000 + nanoseconds / 1e6 < slowDetailMs
  );
}

/** The part of an ended span that tells whether it is worth sending. */
export interface EndedSpan {
  kind: SpanKind;
  status: { code: SpanStatusCode };
  attributes: Attributes;
  duration: HrTime;
}

const isWord = (segment: string): boolean => /^[a-z][a-z_-]{0,30}$/.test(segment);

/**
 * `PUT /control/sites/{id}/releases/{id}`: a call by its API path without its ids, so that there are as many names as
 * calls. Undefined for a path of another kind, such as that of an object in a storage.
 */
export function nameOfCall(method: string, path: string): string | undefined {
  const [own = ''] = path.split('?');
  const [, root = '', things = '', ...rest] = own.split('/');
  if (!/^(?:control|internal|v\d)$/.test(root) || !isWord(things)) return undefined;
  // Some ids in a control protocol are words: the id of the resource, and of a first release.
  const isId = (index: number): boolean =>
    root === 'control' && (index === 0 || /^(?:jobs|releases)$/.test(rest[index - 1] ?? ''));
  const parts = rest.map((segment, index) => (isWord(segment) && !isId(index) ? segment : '{id}'));
  return [method, ['', root, things, ...parts].join('/')].join(' ');
}

/**
 * Runs `work` without spans in a worker or an agent, because the number of its requests grows with the moved bytes. The
 * span around it shows their total time.
 */
export const withoutDetails = <T>(work: () => T): T => (isForWork ? withoutSpans(work) : work());

/**
 * The W3C `traceparent` of the span that is active here, or undefined while tracing is off. Workflows carry it to their
 * workers.
 */
export function currentTraceparent(): string | undefined {
  const span = trace.getActiveSpan()?.spanContext();
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`;
}

/** The server span of a request. */
export interface RequestSpan {
  setAttributes(attributes: Attributes): void;
}

/** The span of the running request, to add facts that become known later. Undefined while tracing is off. */
export function currentRequestSpan(): RequestSpan | undefined {
  const span = trace.getActiveSpan();
  if (span === undefined) return undefined;
  return { setAttributes: (attributes) => void span.setAttributes(attributes) };
}
