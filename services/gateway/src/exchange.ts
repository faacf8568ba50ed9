import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Caller } from '@drydock/service/access';
import type { RequestTrace } from '@drydock/service/telemetry';
import { type Quotas, quotaHeaders } from './quota';

/** One request and its one answer. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  requestId: string;
  startedMs: number;
  /** Undefined while telemetry is off, and for requests that are no calls of the API. */
  trace: RequestTrace | undefined;
  /** The endpoint's label once it is known, by which logs are grouped. */
  route: string;
  /** The endpoint's path template, by which traces and metrics are grouped. */
  routePath: string | undefined;
  isStream: boolean;
  /** The quota headers that every answer has, alternating names and values; `headers` has the others. */
  quota: readonly string[];
  headers: string[];
  caller: Caller | undefined;
  /** The reason of a refusal, for the log. */
  error: unknown;
  /** A listener of code that must know if the client leaves before it is answered. */
  onClientGone: (() => void) | undefined;
}

const readMethods: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);
const acceptedRequestId = /^[A-Za-z0-9_-]{8,64}$/;

export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  quotas: Quotas,
  trace?: RequestTrace,
): Exchange {
  const given = request.headers['x-request-id'];
  const requestId = typeof given === 'string' && acceptedRequestId.test(given) ? given : randomUUID();
  return {
    request,
    response,
    requestId,
    startedMs: performance.now(),
    trace,
    route: 'none',
    routePath: undefined,
    isStream: false,
    quota: quotaHeaders(readMethods.has(request.method) ? quotas.read : quotas.write),
    headers: [],
    caller: undefined,
    error: undefined,
    onClientGone: undefined,
  };
}

/** Headers that browsers may read; see cors.ts. */
const readableFromAnyOrigin = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  'ETag, Idempotent-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After, traceparent, X-Drydock-Mode, ' +
    'X-Request-Id, X-Workflow-Id',
];

/**
 * The head of an answer in Node's fastest form: alternating names and values. The connection is closed if `isClosing`,
 * or if the body did not arrive completely, because its rest must not be read as the next request. Bytes that never
 * became a request are answered with a head of their own (`refuseUnparsed`).
 */
export function headOf(exchange: Exchange, isClosing: boolean, own: readonly string[]): string[] {
  const head = ['X-Request-Id', exchange.requestId, ...exchange.quota, ...exchange.headers, ...own];
  if (exchange.request.headers.origin !== undefined) head.push(...readableFromAnyOrigin);
  const traceparent = exchange.trace?.traceparent;
  if (traceparent !== undefined) head.push('traceparent', traceparent);
  if (isClosing || hasUnreadBody(exchange.request)) head.push('Connection', 'close');
  return head;
}

/**
 * Whether a part of the body is unread. Node marks a request complete only later, so the headers show whether a request
 * that is answered at once has a body at all.
 */
const hasUnreadBody = ({ complete, headers }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0');
