import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Caller } from '@drydock/service/access/internal-token';
import { currentRequestSpan, currentTraceparent, type RequestSpan } from '@drydock/service/telemetry/traceparent';
import { type Quotas, quotaHeaders } from './quota';

/** One request and its one answer. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  requestId: string;
  startedMs: number;
  traceparent: string | undefined;
  span: RequestSpan | undefined;
  /** The endpoint's label once it is known: what logs and traces are grouped by. */
  route: string;
  /** The headers about quotas that the answer has whatever it will be, as names and values by turns; then whatever else it always has. */
  quota: readonly string[];
  headers: string[];
  caller: Caller | undefined;
  /** Why it was refused; for the log. */
  error: unknown;
  /** Set by whoever must know that the client went before it was answered. */
  onClientGone: (() => void) | undefined;
}

const acceptedRequestId = /^[A-Za-z0-9_-]{8,64}$/;

export function openExchange(request: IncomingMessage, response: ServerResponse, quotas: Quotas): Exchange {
  const given = request.headers['x-request-id'];
  const requestId = typeof given === 'string' && acceptedRequestId.test(given) ? given : randomUUID();
  const span = currentRequestSpan();
  span?.setAttributes({ 'drydock.request_id': requestId });
  return {
    request,
    response,
    requestId,
    startedMs: performance.now(),
    traceparent: currentTraceparent(),
    span,
    route: 'none',
    quota: quotaHeaders(request.method === 'GET' || request.method === 'HEAD' ? quotas.read : quotas.write),
    headers: [],
    caller: undefined,
    error: undefined,
    onClientGone: undefined,
  };
}

/**
 * The head of an answer, as Node writes it fastest: names and values by turns.
 * `isClosing` and a body that did not arrive to its end close the connection: what is left of it must not be read as the next request.
 */
export function headOf(exchange: Exchange, isClosing: boolean, own: readonly string[]): string[] {
  const head = ['X-Request-Id', exchange.requestId, ...exchange.quota, ...exchange.headers, ...own];
  if (exchange.traceparent !== undefined) head.push('traceparent', exchange.traceparent);
  if (isClosing || hasUnreadBody(exchange.request)) head.push('Connection', 'close');
  return head;
}

/** Without the look at the headers a request that is answered at once would seem unfinished: Node marks it complete only afterwards. */
const hasUnreadBody = ({ complete, headers }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0');
