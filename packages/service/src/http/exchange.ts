import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { Problem } from '@drydock/contracts/platform/problem';
import { isKnownOutage, type Log } from '../telemetry/log';
import { type LogContext, withLogContext } from '../telemetry/log-context';
import type { ContinuedTrace, ContinuedTraces } from '../telemetry/request-traces';
import { templateOf } from '../telemetry/spans';
import { type Answer, answerOfProblem, keyChallenge, problemOfError } from './answer';

export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The fields of every log line of this request. Once the token is verified, `request_id` is the id in the token. */
  context: LogContext & { request_id: string };
  /**
   * The route in log lines, such as `POST /v1/sites/{siteId}/…`, or `none` if no route matches. In a health server it
   * is the URL.
   */
  route: string;
  /** Undefined while telemetry is off. */
  trace: ContinuedTrace | undefined;
  isStream: boolean;
  startedMs: number;
}

export interface ExchangeKit {
  log: Log;
  /** Whether the process is stopping. A stopping process keeps no connection open for another request. */
  isClosing(): boolean;
  /** Undefined while telemetry is off. */
  traces?: ContinuedTraces | undefined;
}

/**
 * Runs `work` and sends its result, or the problem that it throws. If the result is `undefined`, `work` has sent the
 * answer itself.
 */
export function runExchange(
  kit: ExchangeKit,
  request: IncomingMessage,
  response: ServerResponse,
  route: string,
  work: (exchange: Exchange) => Promise<Answer | undefined>,
): void {
  const trace = kit.traces?.continue(request, templateOf(route));
  const context = { request_id: randomUUID(), ...(trace?.traceId === undefined ? {} : { trace_id: trace.traceId }) };
  const exchange: Exchange = {
    request,
    response,
    context,
    route,
    trace,
    isStream: false,
    startedMs: performance.now(),
  };
  const answerIt = async (): Promise<void> => {
    try {
      const answer = await work(exchange);
      if (answer !== undefined) send(kit, exchange, answer);
      endExchange(kit.log, exchange, answer?.status ?? response.statusCode);
    } catch (error) {
      refuse(kit, exchange, error);
    }
  };
  void withLogContext(context, () => (trace === undefined ? answerIt() : trace.run(answerIt)));
}

function refuse(kit: ExchangeKit, exchange: Exchange, error: unknown): void {
  const problem = problemOfError(error);
  const allow = typeof problem.details.extra?.['allow'] === 'string' ? { allow: problem.details.extra['allow'] } : {};
  if (!exchange.response.headersSent)
    send(kit, exchange, challenged(error, answerOfProblem(problem, exchange.context.request_id, allow)));
  else exchange.response.destroy();
  endExchange(kit.log, exchange, problem.status, problem);
}

/**
 * Marks a 401 about the caller's key with {@link keyChallenge}. A handler refuses that key by a problem, and this
 * package refuses the gateway's token by a TokenRefusal.
 */
const challenged = (error: unknown, answer: Answer): Answer =>
  answer.status === 401 && error instanceof Problem
    ? { ...answer, headers: { ...answer.headers, 'www-authenticate': keyChallenge } }
    : answer;

/** The headers of all answers, also of streams. */
export function commonHeaders(kit: ExchangeKit, exchange: Exchange): Record<string, string> {
  return {
    'cache-control': 'no-store',
    'x-request-id': exchange.context.request_id,
    ...(exchange.trace?.traceparent === undefined ? {} : { traceparent: exchange.trace.traceparent }),
    ...(kit.isClosing() ? { connection: 'close' } : {}),
  };
}

function send(kit: ExchangeKit, exchange: Exchange, answer: Answer): void {
  const { request, response } = exchange;
  // A request whose body was too large leaves bytes on the connection. These bytes must not be read as the next
  // request.
  const unread = !request.complete ? { connection: 'close' } : {};
  const length =
    answer.status === 204 || answer.status === 304 ? {} : { 'content-length': Buffer.byteLength(answer.text) };
  response.writeHead(answer.status, { ...commonHeaders(kit, exchange), ...answer.headers, ...length, ...unread });
  response.end(answer.text);
}

function endExchange(log: Log, exchange: Exchange, status: number, problem?: Problem): void {
  const { request, context, startedMs, isStream } = exchange;
  exchange.trace?.end({
    method: request.method ?? '',
    route: templateOf(exchange.route),
    status,
    startedMs,
    endedMs: performance.now(),
    isStream,
    attributes: () => ({ 'url.path': request.url?.split('?', 1)[0], 'drydock.request_id': context.request_id }),
  });
  logExchange(log, exchange, status, problem);
}

/** Logs one line for each request: never its headers, its query or its body. */
function logExchange(log: Log, exchange: Exchange, status: number, problem?: Problem): void {
  const line = {
    method: exchange.request.method,
    route: exchange.route,
    status,
    duration_ms: Math.round((performance.now() - exchange.startedMs) * 10) / 10,
  };
  if (problem === undefined) log.info(line, 'request');
  else {
    const { internal, cause } = problem.details;
    if (isKnownOutage(problem)) {
      log.info({ ...line, code: problem.code, ...problem.details.extra }, 'request');
      return;
    }
    const why = {
      ...line,
      code: problem.code,
      ...(internal === undefined ? {} : { internal }),
      ...(cause === undefined ? {} : { err: cause }),
    };
    if (status >= 500) log.error(why, 'request');
    else log.info(why, 'request');
  }
}
