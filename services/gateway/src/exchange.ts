import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import { answerOfProblem, problemOfError } from '@drydock/service/http';
import type { RequestTrace } from '@drydock/service/telemetry';
import type { Place } from './places';
import { type Quotas, quotaHeaders } from './quota';

export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  requestId: string;
  startedMs: number;
  /** Undefined while telemetry is off, and for pages. */
  trace: RequestTrace | undefined;
  /** The endpoint's label once it is known, by which logs are grouped. */
  route: string;
  /** The endpoint's path template, by which traces and metrics are grouped. */
  routePath: string | undefined;
  isStream: boolean;
  /** The quota headers, which every answer has, as alternating names and values. `headers` has further headers. */
  quota: readonly string[];
  headers: string[];
  caller: Caller | undefined;
  /** The reason of a refusal, for the log. */
  error: unknown;
  /**
   * Called if the client leaves before it is answered. Gives the place back once the service has ended the call, or at
   * once if the call can be cancelled. Undefined until the call is forwarded.
   */
  onClientGone: ((place: Place) => void) | undefined;
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

/** Headers that let pages of any origin read the answer; see {@link answerOptions}. */
const readableFromAnyOrigin = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  'ETag, Idempotent-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After, traceparent, X-Drydock-Mode, ' +
    'X-Request-Id, X-Workflow-Id',
];

/**
 * The head of an answer in Node's fastest form: alternating names and values. The connection is closed if `isClosing`.
 * It is also closed if the body did not arrive completely, because the rest of the body must not be read as the next
 * request.
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
 * Whether a part of the body is unread. Node sets `complete` some time after a request has begun, even if the request
 * has no body. So the headers decide whether there is a body at all.
 */
const hasUnreadBody = ({ complete, headers }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0');

/**
 * Sends the problem for `error`, or a 500 without details. If the answer has begun already, the only way to show the
 * error is to cut the connection.
 */
export function refuse(exchange: Exchange, error: unknown, isClosing: boolean): void {
  exchange.error = error;
  const { response } = exchange;
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  sendProblem(exchange, problemOfError(error), isClosing);
}

function sendProblem(exchange: Exchange, refusal: Problem, isClosing: boolean): void {
  const { allow, ...extra } = refusal.details.extra ?? {};
  const shown = allow === undefined ? refusal : problem(refusal.code, { ...refusal.details, extra });
  const { status, headers, text } = answerOfProblem(
    shown,
    exchange.requestId,
    typeof allow === 'string' ? { allow } : {},
  );
  const own = ['Cache-Control', 'no-store', 'Content-Length', String(Buffer.byteLength(text))];
  for (const [name, value] of Object.entries(headers)) own.push(name, value);
  exchange.response.writeHead(status, headOf(exchange, isClosing, own));
  exchange.response.end(exchange.request.method === 'HEAD' ? undefined : text);
}

/**
 * The headers that pages of any origin may send. A page can do only what the key in its `Authorization` allows, because
 * the gateway ignores cookies and its answers never allow credentials.
 */
const sentHeaders =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id, traceparent';
/** How long browsers keep the answer to a preflight request. Chromium accepts at most these two hours. */
const keptSeconds = '7200';

/**
 * Answers OPTIONS with the path's methods. OPTIONS needs no key, because a browser sends none with a preflight request.
 */
export function answerOptions(exchange: Exchange, methods: string, isClosing: boolean): void {
  const preflight = [
    'Access-Control-Allow-Methods',
    methods,
    'Access-Control-Allow-Headers',
    sentHeaders,
    'Access-Control-Max-Age',
    keptSeconds,
  ];
  const own = [
    'Allow',
    methods,
    'Cache-Control',
    'no-store',
    ...(exchange.request.headers.origin === undefined ? [] : preflight),
  ];
  exchange.response.writeHead(204, headOf(exchange, isClosing, own));
  exchange.response.end();
}
