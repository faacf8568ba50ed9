import {
  type Attributes,
  context,
  type HrTime,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { suppressTracing } from '@opentelemetry/core';

/**
 * Whether every span is recorded, for close inspection: each layer of a statement and each read of a queue.
 * TRACE_DETAIL=full turns it on.
 */
export const isFullDetail = process.env['TRACE_DETAIL'] === 'full';

/**
 * An attribute of an event stream's span. A stream lasts as long as its client stays, so the span's duration means
 * nothing.
 */
export const streamAttribute = 'drydock.stream';

/**
 * An attribute that is true on the first span of a routine workflow, which a schedule starts every minute or so. Such
 * work is sampled like reads.
 */
export const routineAttribute = 'drydock.routine';

export { suppressTracing };

/**
 * Runs `work` without spans, except with TRACE_DETAIL=full. It is for polls and other frequent calls, because their
 * many spans would hide all others.
 */
export const withoutSpans = <T>(work: () => T): T =>
  isFullDetail ? work() : context.with(suppressTracing(context.active()), work);

let isForWork = false;

/**
 * Marks this process as a worker or an agent. It must be called once, at the start. Readers of a trace look for the
 * steps of a workflow, but each step has dozens of statements and reads. By default only the statements and reads that
 * failed or were slow are sent.
 */
export const traceForWork = (): void => {
  isForWork = true;
};

/** Milliseconds from which a statement or a read counts as slow. */
const slowDetailMs = 100;

/**
 * Whether a span adds nothing to the span around it. That is so for a statement or a read that succeeded quickly in a
 * worker or an agent.
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

/** The part of an ended span that decides whether it is sent. */
export interface EndedSpan {
  kind: SpanKind;
  status: { code: SpanStatusCode };
  attributes: Attributes;
  duration: HrTime;
}

const isWord = (segment: string): boolean => /^[a-z][a-z_-]{0,30}$/.test(segment);

/**
 * The name of a call: its method and its path without the ids, such as `PUT /control/sites/{id}/releases/{id}`, so that
 * there are few names. Undefined for a path outside `/control`, `/internal` and `/v1`, such as the path of an object in
 * a storage.
 */
export function nameOfCall(method: string, path: string): string | undefined {
  const [own = ''] = path.split('?');
  const [, root = '', things = '', ...rest] = own.split('/');
  if (!/^(?:control|internal|v\d)$/.test(root) || !isWord(things)) return undefined;
  // In a control protocol some ids are words, such as the id of a first release, so an id is recognised by its position
  // in the path.
  const isId = (index: number): boolean =>
    root === 'control' && (index === 0 || /^(?:jobs|releases)$/.test(rest[index - 1] ?? ''));
  const parts = rest.map((segment, index) => (isWord(segment) && !isId(index) ? segment : '{id}'));
  return [method, ['', root, things, ...parts].join('/')].join(' ');
}

/**
 * Runs `work` without spans in a worker or an agent; see {@link withoutSpans}. It is for requests whose number grows
 * with the bytes that they move.
 */
export const withoutDetails = <T>(work: () => T): T => (isForWork ? withoutSpans(work) : work());

export const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;

export interface RequestSpan {
  setAttributes(attributes: Attributes): void;
}

const templates = new Map<string, string | undefined>();

/**
 * The path template of a route such as `GET /v1/sites/{siteId}`; undefined for `none`, which stands for no route. Each
 * route has one string for its template, because a new string would have to be hashed for every request.
 */
export function templateOf(route: string): string | undefined {
  if (!templates.has(route)) templates.set(route, route.split(' ')[1]);
  return templates.get(route);
}

/** The span of the running request, to which attributes can be added. Undefined if the request has no span. */
export function currentRequestSpan(): RequestSpan | undefined {
  const span = trace.getActiveSpan();
  if (span === undefined) return undefined;
  return { setAttributes: (attributes) => void span.setAttributes(attributes) };
}
