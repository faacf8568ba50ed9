import type { EndpointDefinition, ServiceName } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import { type Caller, signRequestToken } from '@drydock/service/access';
import { keyChallenge, limitLengthMax, queryParser } from '@drydock/service/http';
import type { Log } from '@drydock/service/telemetry';
import { type Dispatcher, errors, type Pool } from 'undici';
import { type Exchange, headOf } from './exchange';
import type { Place } from './places';
import { type RouteMatch, upstreamPath } from './route-table';
import { type Replica, UnansweredError, type Upstream, unavailable } from './upstream';

/**
 * The longest query that is forwarded. It is several times as long as the longest cursor. The path with its query is
 * part of the signed token, whose size is limited.
 */
const searchLengthMax = 2_048;
/** The longest If-Match or If-None-Match that is forwarded. A few dozen entity tags of the API fit into it. */
const entityTagsLengthMax = 1_000;
/**
 * The longest Last-Event-ID that is forwarded. No id of an event is as long. A longer header is left out, because the
 * service refuses requests with large headers.
 */
const eventIdLengthMax = 64;

export interface ForwardOptions {
  upstreams: Readonly<Partial<Record<ServiceName, Upstream>>>;
  log: Log;
  /** Aborted when the gateway begins to stop. Event streams end then, and other answers close their connections. */
  closing: AbortSignal;
  /** Aborted when the gateway has drained. It ends the event streams that were opened during the drain. */
  drained: AbortSignal;
}

export type Forward = (exchange: Exchange, match: RouteMatch, caller: Caller, body: Buffer) => Promise<void>;

/**
 * Forwards a call to its service. The request is built anew, with only those headers of the client that the contract
 * names.
 */
export function createForward({ upstreams, log, closing, drained }: ForwardOptions): Forward {
  return async (exchange, match, caller, body) => {
    const { endpoint } = match.route;
    const upstream = upstreams[endpoint.service];
    if (upstream === undefined) throw unavailable(endpoint.service, { internal: 'not configured' });
    const path = pathOf(match);
    const hasKey = idempotencyKeyOf(exchange, endpoint) !== undefined;
    // A safe call may be sent twice. A second read does no harm, and a service carries out a call with an
    // Idempotency-Key only once.
    const isSafe = endpoint.method === 'GET' || hasKey;
    const call = () =>
      upstream.replicas.run((replica, leftMs) => {
        // The options are built for each attempt, because a service accepts a token only once.
        const options = upstreamRequest(upstream, { exchange, match, path, caller, body, leftMs });
        return relayAnswer({ replica, options, exchange, closing, drained, isStream: match.route.isStream });
      }, isSafe);
    const outcome = await upstream.guard(call, endpoint.method === 'GET' ? undefined : explainLostWrite(hasKey));
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

/**
 * The detail of the problem for a write that was sent and got no answer: the write may have taken effect. Undefined for
 * every other error.
 */
const explainLostWrite =
  (hasKey: boolean) =>
  (error: unknown): string | undefined =>
    (error instanceof UnansweredError && error.mayBeBegun) || error instanceof errors.HeadersTimeoutError
      ? `${unknownOutcome} ${hasKey ? 'Send it again with the same Idempotency-Key.' : readFirst}`
      : undefined;

const unknownOutcome =
  'The connection was lost before an answer came, so that the request may or may not have been carried out.';
const readFirst = 'Read the resource before you send it again: without an Idempotency-Key it may take effect twice.';

interface Forwarded {
  exchange: Exchange;
  match: RouteMatch;
  /** The path with its query. */
  path: string;
  caller: Caller;
  body: Buffer;
  /** The milliseconds that are left until the answer must begin. */
  leftMs: number;
}

function upstreamRequest(
  { name, key, limits }: Upstream,
  { exchange, match, path, caller, body, leftMs }: Forwarded,
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
  // An If-None-Match that is too long is left out. The service then sends the whole answer, which is also correct.
  if (ifNoneMatch !== undefined && ifNoneMatch.length <= entityTagsLengthMax) sent.push('if-none-match', ifNoneMatch);
  if (body.length > 0) sent.push('content-type', 'application/json');
  const lastEventId = isStream ? singleHeader(headers['last-event-id']) : undefined;
  if (lastEventId !== undefined && lastEventId.length <= eventIdLengthMax) sent.push('last-event-id', lastEventId);
  const bodyTimeout = isStream ? limits.streamMs : limits.bodyMs;
  return {
    method: endpoint.method,
    path,
    headers: sent,
    body: body.length > 0 ? body : null,
    headersTimeout: leftMs,
    bodyTimeout,
  };
}

/**
 * The path with the client's query. Throws 422 if the query is too long to be signed. An endpoint that ignores
 * undeclared parameters gets the path alone.
 */
function pathOf({ route, values, search }: RouteMatch): string {
  const { endpoint } = route;
  const path = upstreamPath(route, values);
  if (search === '' || endpoint.undeclaredQuery === 'ignored') return path;
  if (search.length > searchLengthMax) refuseLongQuery(endpoint, search);
  return `${path}?${search}`;
}

/**
 * Refuses a long query with the problem that the service would answer. Undeclared parameters are refused first, and
 * only then a parameter that is too long.
 */
function refuseLongQuery(endpoint: EndpointDefinition, search: string): never {
  const { limit = '', cursor } = queryParser(endpoint)(search) ?? {};
  if (String(limit).length > limitLengthMax) throw problem('invalid_limit');
  if (cursor !== undefined) throw problem('invalid_cursor');
  throw problem('invalid_request', { detail: `Send at most ${searchLengthMax} characters after the question mark.` });
}

/**
 * Reads If-Match. A header that is too long is refused: if it were left out, the service would change the record
 * whatever its version is.
 */
function readIfMatch(header: string | undefined): string | undefined {
  if (header === undefined || header.length <= entityTagsLengthMax) return header;
  throw problem('invalid_request', { detail: `Send at most ${entityTagsLengthMax} characters in If-Match.` });
}

const idempotencyKeyOf = ({ request }: Exchange, { idempotency }: EndpointDefinition): string | undefined =>
  idempotency === 'accepted' ? singleHeader(request.headers['idempotency-key']) : undefined;

const singleHeader = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;

/** Headers of a service's answer that the client receives. All others are left out. */
const relayedHeaders = [
  'content-type',
  'content-length',
  'cache-control',
  'location',
  'retry-after',
  'x-workflow-id',
  'etag',
  'idempotent-replayed',
  'x-accel-buffering',
] as const;

/**
 * `key_refused`: the caller's key was revoked after the gateway had verified it. `token_refused`: the service did not
 * accept the gateway's own token. The client has received nothing of these two answers.
 */
export type RelayOutcome = 'relayed' | 'key_refused' | 'token_refused' | 'client_gone';

const clientGone = new Error('the client is gone');

export interface Relay {
  replica: Replica;
  options: Dispatcher.DispatchOptions;
  exchange: Exchange;
  closing: AbortSignal;
  drained: AbortSignal;
  /**
   * Whether the answer is an event stream: its head is sent before its first event, and it ends when the gateway stops.
   */
  isStream: boolean;
}

/**
 * Sends one request and passes its answer on to the client, as fast as the client reads. Resolves once the answer has
 * begun or the client has left. Rejects with {@link UnansweredError} or undici's error if no answer has begun. An
 * answer that breaks off later breaks off for the client too. If the client leaves, a GET is cancelled. Any other call
 * is completed, because it may have begun to take effect. It keeps its place until the service has answered, so that a
 * caller who hangs up has no more calls at the service than one who waits.
 */
const relayAnswer = (relay: Relay): Promise<RelayOutcome> =>
  new Promise((resolve, reject) => {
    const { exchange } = relay;
    const answer = new RelayedAnswer(relay, resolve, reject);
    exchange.onClientGone = (place) => answer.abandon(place);
    if (exchange.response.destroyed) return answer.leave('client_gone');
    if (relay.isStream) endWithGateway(relay, answer);
    answer.send();
  });

function endWithGateway({ closing, drained, exchange: { response } }: Relay, answer: RelayedAnswer): void {
  // A stream that is opened while the gateway drains lasts until the drain ends.
  const end = closing.aborted ? drained : closing;
  const endStream = (): void => {
    answer.leave('relayed');
    response.end();
  };
  end.addEventListener('abort', endStream, { once: true });
  response.once('close', () => end.removeEventListener('abort', endStream));
}

/** Handles undici's events for one answer. A class costs less than closures, and every request makes an instance. */
class RelayedAnswer implements Dispatcher.DispatchHandler {
  private readonly pool: Pool;
  private readonly relay: Relay;
  private readonly resolve: (outcome: RelayOutcome) => void;
  private readonly reject: (error: Error) => void;
  private controller: Dispatcher.DispatchController | undefined;
  private ignored = false;
  /** Whether undici has the request and has not reported the end of its answer. */
  private isUnderWay = false;
  /** The place of a call whose client has left. It is given back when the answer ends. */
  private place: Place | undefined;
  private sent = false;
  private begun = false;
  /** The body of a small answer so far, one character for each byte. */
  private held: string | undefined;

  constructor(relay: Relay, resolve: (outcome: RelayOutcome) => void, reject: (error: Error) => void) {
    this.pool = relay.replica.pool;
    this.relay = relay;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Must be called at most once. */
  send(): void {
    this.isUnderWay = true;
    this.pool.dispatch(this.relay.options, this);
  }

  /**
   * Stops relaying to a client that has left. The place of a write that the service still works on is given back when
   * the service has answered. Any other place is given back at once.
   */
  abandon(place: Place): void {
    if (!this.isUnderWay) place.giveBack();
    else if (this.relay.options.method === 'GET') place.abandon();
    else this.place = place;
    this.leave('client_gone');
  }

  /** Resolves with `outcome`, and ignores the rest of the answer. */
  leave(outcome: RelayOutcome): void {
    this.ignored = true;
    if (this.relay.options.method === 'GET') this.controller?.abort(clientGone);
    else this.controller?.resume();
    this.resolve(outcome);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    this.sent = true;
    if (this.ignored && this.relay.options.method === 'GET') controller.abort(clientGone);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    if (status >= 200 && headers['connection'] === 'close') this.relay.replica.leave(this.pool);
    if (status < 200 || this.ignored) return;
    if (status === 401) {
      this.leave(headers['www-authenticate'] === keyChallenge ? 'key_refused' : 'token_refused');
      return;
    }
    const { exchange, closing, isStream } = this.relay;
    this.begun = true;
    exchange.response.writeHead(status, headOf(exchange, closing.aborted, pickHeaders(headers)));
    if (isStream) exchange.response.flushHeaders();
    else if (isSmall(headers['content-length'])) this.held = '';
    this.resolve('relayed');
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.ignored) return;
    const { response } = this.relay.exchange;
    if (this.held !== undefined) this.held += chunk.toString('latin1');
    else if (!response.write(chunk)) {
      controller.pause();
      response.once('drain', () => controller.resume());
    }
  }

  onResponseEnd(): void {
    this.end();
    if (this.ignored) return;
    const { response } = this.relay.exchange;
    if (this.held === undefined) response.end();
    else response.end(this.held, 'latin1');
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end();
    if (this.ignored) return;
    if (this.begun) this.breakOff();
    else this.reject(!this.sent || isDeadConnection(error) ? new UnansweredError(this.sent, error) : error);
  }

  private end(): void {
    this.isUnderWay = false;
    this.place?.giveBack();
    this.place = undefined;
  }

  /** Passes on the received part of an answer that broke off, and ends the connection. */
  private breakOff(): void {
    const { response } = this.relay.exchange;
    response.flushHeaders();
    if (this.held !== undefined && this.held !== '') response.write(this.held, 'latin1', () => response.destroy());
    else response.destroy();
  }
}

type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The largest body, in bytes, that is collected and sent as one string. Node sends the head and such a body with a
 * single write.
 */
const heldBytesMax = 12_288;

const isSmall = (length: string | string[] | undefined): boolean =>
  typeof length === 'string' && Number(length) <= heldBytesMax;

function pickHeaders(headers: AnswerHeaders): string[] {
  const picked: string[] = [];
  for (const name of relayedHeaders) {
    const value = headers[name];
    if (typeof value === 'string') picked.push(name, value);
  }
  return picked;
}

const deadConnectionCodes = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
const isDeadConnection = (error: Error): boolean =>
  'code' in error && typeof error.code === 'string' && deadConnectionCodes.has(error.code);
