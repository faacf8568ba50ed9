import type { EndpointDefinition, ServiceName } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import { type Caller, signRequestToken } from '@drydock/service/access';
import { limitLengthMax, queryParser } from '@drydock/service/http';
import type { Log } from '@drydock/service/telemetry';
import { type Dispatcher, errors } from 'undici';
import type { Exchange } from './exchange';
import { relayAnswer } from './relay-answer';
import { UnansweredError } from './replicas';
import { type RouteMatch, upstreamPath } from './route-table';
import { type Upstream, unavailable } from './upstream';

/**
 * Several times the longest cursor. The path is part of the signed token, whose size is limited: a quote takes twice
 * its place there.
 */
const searchLengthMax = 2_048;
/** The limit is longer than a list of a few dozen of our tags. */
const entityTagsLengthMax = 1_000;
/**
 * The limit is longer than any id of an event. A longer Last-Event-ID is not forwarded, because the service refuses
 * requests with large headers.
 */
const eventIdLengthMax = 64;

export interface ForwardOptions {
  upstreams: Readonly<Partial<Record<ServiceName, Upstream>>>;
  log: Log;
  /** Aborted when the gateway begins to stop: event streams end, other answers close their connections. */
  closing: AbortSignal;
  /** Aborted when the gateway has drained. It ends the event streams that were opened during the drain. */
  drained: AbortSignal;
}

export type Forward = (exchange: Exchange, match: RouteMatch, caller: Caller, body: Buffer) => Promise<void>;

/** Builds the upstream's request from nothing: no header of the client is copied except the few in the contract. */
export function createForward({ upstreams, log, closing, drained }: ForwardOptions): Forward {
  return async (exchange, match, caller, body) => {
    const { endpoint } = match.route;
    const upstream = upstreams[endpoint.service];
    if (upstream === undefined) throw unavailable(endpoint.service, { internal: 'not configured' });
    const path = pathOf(match);
    // Whether the call may be repeated. A second read does no harm, and a service carries out a call with an
    // Idempotency-Key only once.
    const isSafe = endpoint.method === 'GET' || idempotencyKeyOf(exchange, endpoint) !== undefined;
    const call = () =>
      upstream.replicas.run((replica, leftMs) => {
        // The options are built for each attempt, because a token works once.
        const options = {
          ...upstreamRequest(upstream, { exchange, match, path, caller, body }),
          headersTimeout: leftMs,
        };
        return relayAnswer({ replica, options, exchange, closing, drained, isStream: match.route.isStream });
      }, isSafe);
    const outcome = await upstream.guard(call, endpoint.method === 'GET' ? undefined : explainLostWrite);
    if (outcome === 'key_refused')
      throw problem('unauthenticated', { internal: 'revoked while the call was on its way' });
    if (outcome !== 'token_refused') return;
    log.error(
      { dependency: upstream.name, request_id: exchange.requestId },
      'our own token was refused: clocks apart or secrets mixed up',
    );
    throw unavailable(upstream.name, { internal: 'the service refused our token' });
  };
}

/** A write without an answer may have taken effect, unless it was not even sent. */
const explainLostWrite = (error: unknown): string | undefined =>
  (error instanceof UnansweredError && error.mayBeBegun) || error instanceof errors.HeadersTimeoutError
    ? unknownOutcome
    : undefined;

const unknownOutcome =
  'The connection was lost before an answer came, so that the request may or may not have been carried out. ' +
  'Send it again with the same Idempotency-Key.';

interface Forwarded {
  exchange: Exchange;
  match: RouteMatch;
  /** With its query. */
  path: string;
  caller: Caller;
  body: Buffer;
}

function upstreamRequest(
  { name, key, limits }: Upstream,
  { exchange, match, path, caller, body }: Forwarded,
): Dispatcher.DispatchOptions {
  const { endpoint, isStream } = match.route;
  const { headers } = exchange.request;
  const idempotencyKey = idempotencyKeyOf(exchange, endpoint);
  const ifMatch = endpoint.method === 'PATCH' ? readIfMatch(headers['if-match']) : undefined;
  const bound = { requestId: exchange.requestId, method: endpoint.method, path, body, idempotencyKey, ifMatch };
  const sent = [
    'authorization',
    `Bearer ${signRequestToken(key, name, caller, bound)}`,
    'x-request-id',
    exchange.requestId,
  ];
  sent.push('accept', isStream ? 'text/event-stream' : 'application/json');
  if (exchange.trace?.traceparent !== undefined) sent.push('traceparent', exchange.trace.traceparent);
  if (idempotencyKey !== undefined) sent.push('idempotency-key', idempotencyKey);
  if (ifMatch !== undefined) sent.push('if-match', ifMatch);
  const ifNoneMatch = endpoint.method === 'GET' && !isStream ? headers['if-none-match'] : undefined;
  // An If-None-Match that is too long is left out: without it the service sends the whole answer, which is correct too.
  if (ifNoneMatch !== undefined && ifNoneMatch.length <= entityTagsLengthMax) sent.push('if-none-match', ifNoneMatch);
  if (body.length > 0) sent.push('content-type', 'application/json');
  const lastEventId = isStream ? singleHeader(headers['last-event-id']) : undefined;
  if (lastEventId !== undefined && lastEventId.length <= eventIdLengthMax) sent.push('last-event-id', lastEventId);
  const bodyTimeout = isStream ? limits.streamMs : limits.bodyMs;
  return { method: endpoint.method, path, headers: sent, body: body.length > 0 ? body : null, bodyTimeout };
}

/** The path with its query, which the service refuses if it takes none. Throws 422 if it is too long to be signed. */
function pathOf({ route, values, search }: RouteMatch): string {
  const { endpoint } = route;
  const path = upstreamPath(route, values);
  if (search === '' || endpoint.undeclaredQuery === 'ignored') return path;
  if (search.length > searchLengthMax) refuseLongQuery(endpoint, search);
  return `${path}?${search}`;
}

/** Refuses as the service would: undeclared parameters first, then the longest of its own. */
function refuseLongQuery(endpoint: EndpointDefinition, search: string): never {
  const { limit = '', cursor } = queryParser(endpoint)(search) ?? {};
  if (String(limit).length > limitLengthMax) throw problem('invalid_limit');
  if (cursor !== undefined) throw problem('invalid_cursor');
  throw problem('invalid_request', { detail: `Send at most ${searchLengthMax} characters after the question mark.` });
}

/**
 * Reads If-Match. A header that cannot be used is refused and never dropped, because the change would then be made to
 * any version of the record.
 */
function readIfMatch(header: string | undefined): string | undefined {
  if (header === undefined || header.length <= entityTagsLengthMax) return header;
  throw problem('invalid_request', { detail: `Send at most ${entityTagsLengthMax} characters in If-Match.` });
}

const idempotencyKeyOf = ({ request }: Exchange, { idempotency }: EndpointDefinition): string | undefined =>
  idempotency === 'accepted' ? singleHeader(request.headers['idempotency-key']) : undefined;

const singleHeader = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;
