import type { IncomingMessage, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { bodyRefusalsOf, type EndpointDefinition, type ServiceName } from '@drydock/contracts/platform/endpoint';
import { Problem, problem } from '@drydock/contracts/platform/problem';
import { authorise, type Caller, type Shares } from '@drydock/service/access';
import { assertJsonContentType, readBody } from '@drydock/service/http';
import { isKnownOutage, type Log, type RequestTraces } from '@drydock/service/telemetry';
import type { Authenticate } from './authenticate';
import { answerOptions, type Exchange, openExchange, refuse } from './exchange';
import type { Forward } from './forward';
import { assertClean } from './hygiene';
import { holdersOf, type Place, type Places } from './places';
import { type Limit, type Quotas, quotaHeaders } from './quota';
import type { RouteTable } from './route-table';

type RequestLog = (exchange: Exchange, nowMs: number) => void;

/** Logs one line for each request: never its headers, its query or its body. */
export function createRequestLog(log: Log): RequestLog {
  // The redaction of members by name costs more than the rest of logging. It is off for these lines, because they
  // contain only the members below, and none is a secret.
  const lines = log.child({}, { redact: [] });
  return (exchange, nowMs) => {
    const { request, response, error, caller } = exchange;
    const line = {
      method: request.method,
      route: exchange.route,
      status: response.headersSent ? response.statusCode : 0,
      duration_ms: Math.round((nowMs - exchange.startedMs) * 10) / 10,
      request_id: exchange.requestId,
      trace_id: exchange.trace?.traceId,
      org_id: caller?.orgId,
      key_id: caller?.keyId,
      aborted: response.writableFinished ? undefined : true,
    };
    if (error === undefined) lines.info(line, 'request');
    else if (!(error instanceof Problem)) log.error({ ...line, err: error }, 'request');
    else {
      const { code, details, status } = error;
      const why = { ...line, code, internal: details.internal };
      if (status >= 500 && code !== 'overloaded' && !isKnownOutage(error))
        log.error({ ...why, err: details.cause }, 'request');
      else lines.info(why, 'request');
    }
  };
}

interface PipelineKit {
  routes: RouteTable;
  authenticate: Authenticate;
  quotas: Quotas;
  limit: Limit;
  forward: Forward;
  /**
   * Limits the calls that are in progress. Event streams have limits of their own, so that a thousand watchers cannot
   * block other calls.
   */
  places: Places;
  streams: Readonly<Record<ServiceName, Shares>>;
  /** Limits the bodies that are being received. A call takes one of the `places` only after its body has arrived. */
  bodies: Shares;
  requestLog: RequestLog;
  traces: RequestTraces | undefined;
  isClosing(): boolean;
}

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Handles every API request. The order of the checks is prescribed (decisions.md, Order of checks), so a later check
 * never answers before an earlier one. A value that is no promise is not awaited, because an await costs as much as a
 * check.
 */
export function createPipeline(kit: PipelineKit): Handle {
  return (request, response) => {
    const { traceparent } = request.headers;
    const trace = kit.traces?.begin(request.method ?? '', typeof traceparent === 'string' ? traceparent : undefined);
    const exchange = openExchange(request, response, kit.quotas, trace);
    const end = onceClosed(kit, exchange);
    serve(kit, exchange, end).catch((error: unknown) => refuse(exchange, error, kit.isClosing()));
  };
}

const keyLengthMax = 255;

/**
 * Whether the Idempotency-Key is sent twice or is too long. The service checks everything else about it. A longer key
 * must not reach the service, whose HTTP server refuses large headers with a 431 that has no body, and closes the
 * connection.
 */
const isRefusedKey = ({ headers }: IncomingMessage, repeated: ReadonlySet<string>): boolean =>
  repeated.has('idempotency-key') || (headers['idempotency-key'] ?? '').length > keyLengthMax;

async function serve(kit: PipelineKit, exchange: Exchange, end: Ending): Promise<void> {
  const { request } = exchange;
  const repeated = assertClean(request);
  if (request.method === 'OPTIONS')
    return answerOptions(exchange, kit.routes.methods(request.url ?? ''), kit.isClosing());
  const match = kit.routes.match(request.method ?? '', request.url ?? '');
  const { route } = match;
  exchange.route = route.label;
  exchange.routePath = route.endpoint.path;
  exchange.isStream = route.isStream;
  const isExempt = route.endpoint.quota === 'exempt';
  const quota = kit.quotas[route.endpoint.quota === 'exempt' ? 'write' : route.endpoint.quota];
  exchange.quota = quotaHeaders(quota);

  const known = kit.authenticate(request, repeated, exchange.trace?.traceparent);
  const caller = known instanceof Promise ? await known : known;
  exchange.caller = caller;
  if (caller.mode === 'sandbox') exchange.headers.push('X-Drydock-Mode', 'sandbox');
  // An exempt call learns how many writes are left, uses none of them and is never refused by the quota.
  const counted = isExempt ? kit.limit.peek(quota, caller) : kit.limit.count(quota, caller);
  const use = counted instanceof Promise ? await counted : counted;
  exchange.quota = quotaHeaders(quota, use);
  if (use.isExceeded && !isExempt) throw problem('rate_limited', { retryAfterSeconds: use.resetSeconds });
  authorise(route.endpoint.permissions, caller);
  if (route.endpoint.idempotency === 'accepted' && isRefusedKey(request, repeated))
    throw problem('idempotency_key_invalid');
  const body = route.endpoint.body === undefined ? nothing : await takeBody(kit, exchange, caller, route.endpoint);
  if (route.isStream) end.holdStream(caller, kit.streams[route.endpoint.service]);
  else {
    const place = kit.places.take(caller);
    end.holdPlace(place instanceof Promise ? await place : place);
  }
  await kit.forward(exchange, match, caller, body);
}

function endTrace(
  { request, response, requestId, trace, routePath, isStream, startedMs, caller }: Exchange,
  endedMs: number,
): void {
  // Node reports the status 200 until the head of an answer is written, so the status counts only after that.
  const status = response.headersSent ? response.statusCode : undefined;
  trace?.end({
    method: request.method ?? '',
    route: routePath,
    status,
    startedMs,
    endedMs,
    isStream,
    attributes: () => ({
      'url.path': request.url?.split('?', 1)[0],
      'user_agent.original': request.headers['user-agent'],
      'drydock.request_id': requestId,
      'drydock.org_id': caller?.orgId,
      'drydock.key_id': caller?.keyId,
      'drydock.key_prefix': caller === undefined ? undefined : prefixOf(request.headers.authorization),
    }),
  });
}

/** The public part of a token, dd_live_PREFIX_…, by which people recognise a key. */
const prefixOf = (authorization = ''): string => authorization.split('_', 3)[2] ?? '';

const nothing = Buffer.alloc(0);

/**
 * Reads the body. Its type and encoding are checked here, because the service does not get the client's headers for
 * them.
 */
async function takeBody(
  { bodies, places }: PipelineKit,
  { request, response }: Exchange,
  caller: Caller,
  endpoint: EndpointDefinition,
): Promise<Buffer> {
  const { headers } = request;
  if (request.destroyed && !request.complete) throw problem('invalid_request', { internal: 'the client went away' });
  const holders = holdersOf(caller);
  if (!bodies.take(holders)) throw places.ownShareIsUp(caller);
  try {
    if (headers.expect !== undefined) response.writeContinue();
    const body = await readBody(request);
    if (body.length > 0)
      assertJsonContentType(bodyRefusalsOf(endpoint).otherType, headers['content-type'], headers['content-encoding']);
    return body;
  } finally {
    bodies.giveBack(holders);
  }
}

interface Ending {
  /** Gives the place back at the end of the exchange, or at once if the exchange has ended already. */
  holdPlace(place: Place): void;
  /**
   * Takes a place among a service's event streams. Throws 429 `too_many_streams` if no place is free or the caller uses
   * its whole share.
   */
  holdStream(caller: Caller, streams: Shares): void;
}

/**
 * Ends an exchange when its answer was sent or its client has left. One line is logged, and the place is given back
 * once: at the end of the exchange, or later if the service still works on the call of a client that has left.
 */
function onceClosed(kit: PipelineKit, exchange: Exchange): Ending {
  const { response } = exchange;
  let held: Place | undefined;
  let isClosed = false;
  response.once('close', () => {
    isClosed = true;
    if (held !== undefined) {
      if (response.writableFinished || exchange.onClientGone === undefined) held.giveBack();
      else exchange.onClientGone(held);
    }
    const nowMs = performance.now();
    kit.requestLog(exchange, nowMs);
    endTrace(exchange, nowMs);
  });
  const holdPlace = (place: Place): void => {
    if (isClosed) place.giveBack();
    else held = place;
  };
  return {
    holdPlace,
    holdStream: (caller, streams) => {
      const holders = holdersOf(caller);
      if (!streams.take(holders)) throw problem('too_many_streams', { retryAfterSeconds: 5 });
      const giveBack = (): void => streams.giveBack(holders);
      holdPlace({ giveBack, abandon: giveBack });
    },
  };
}
