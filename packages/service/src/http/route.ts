import type { KeyObject } from 'node:crypto';
import type { BodyOf, EndpointDefinition, ParamsOf, QueryOf, ResponseOf } from '@drydock/contracts/platform/endpoint';
import type { z } from 'zod';
import type { Caller } from '../access/internal-token';

/** The parsed request. Handlers get it in place of Node's raw request. */
export interface HandlerRequest<E extends EndpointDefinition> {
  params: ParamsOf<E>;
  query: QueryOf<E>;
  body: BodyOf<E>;
  caller: Caller;
  requestId: string;
  /** The Idempotency-Key as it was sent, for endpoints that derive a secret from it. It must never be stored. */
  idempotencyKey: string | undefined;
  now: Date;
  /**
   * The W3C traceparent of this request. Workflows that the request starts continue its trace. Undefined while tracing
   * is off.
   */
  traceparent: string | undefined;
  /**
   * Throws 412 unless the caller's If-Match names the present state of the record, which `read` returns as the answer
   * to GET. Does nothing without an If-Match. The handler of a PATCH calls this function once it has locked the record.
   */
  assertMatch(read: () => ResponseOf<E> | Promise<ResponseOf<E>>): Promise<void>;
  /**
   * Registers work for after the commit, such as sending a wake-up. The work does not run after a rollback. Its failure
   * is only logged.
   */
  afterCommit(work: () => unknown): void;
}

/**
 * The reply to a request. `headers` are sent besides those that every answer has; examples are Location and
 * Retry-After. A later request with the same Idempotency-Key gets the same headers.
 */
export type ReplyTo<E extends EndpointDefinition> = {
  status: E['response']['status'];
  headers?: Record<string, string>;
} & (E['response'] extends {
  schema: z.ZodType;
}
  ? { body: ResponseOf<E> }
  : { body?: never });

/** A reply without the types of its endpoint. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

/**
 * Keeps the secret of an answer out of storage. `remove` gives what is stored for a replay, and `rehydrate` restores
 * the whole answer from it.
 */
export interface ReplaySecret<E extends EndpointDefinition> {
  remove(body: ResponseOf<E>): unknown;
  /**
   * Restores the body. The result must be exactly the body that was sent. The equality is checked before the first
   * answer is committed. `stored` is the result of `remove`, as JSON stores it.
   */
  rehydrate(stored: unknown, rawIdempotencyKey: string, request: HandlerRequest<E>): ResponseOf<E>;
}

/** The handler of a GET, or of a POST that changes nothing. It runs without a transaction. */
export interface ReadHandlers<E extends EndpointDefinition> {
  read(request: HandlerRequest<E>): Promise<ReplyTo<E>>;
}

export interface ExecuteHandlers<E extends EndpointDefinition, Tx, World> {
  /** Reads what `execute` needs from other systems, without a transaction. It may refuse the request. */
  preload?(request: HandlerRequest<E>): Promise<World>;
  /**
   * Runs the effect in one short transaction, up to three times if Postgres reports a conflict. It must do nothing
   * slow.
   */
  execute(tx: Tx, request: HandlerRequest<E>, world: World): Promise<ReplyTo<E>>;
  /** Absent if the answer contains no secret. */
  replaySecret?: ReplaySecret<E>;
  /**
   * Awaited between the commit and the answer, also for a replay. It is for effects that other processes see only a
   * moment later.
   */
  beforeAnswer?(request: HandlerRequest<E>): Promise<void>;
}

/**
 * The handlers of an effect whose answer is known only later. `execute` returns the accepted work as plain JSON, and
 * its transaction is committed. `awaitOutcome` then waits for the outcome of that work, outside any transaction. After
 * a crash between the two, a repeat with the same Idempotency-Key continues with `awaitOutcome`. If `awaitOutcome`
 * throws {@link outcomeUnknown}, a repeat continues in the same way.
 */
export interface AwaitHandlers<E extends EndpointDefinition, Tx, World, Accepted> {
  preload?(request: HandlerRequest<E>): Promise<World>;
  execute(tx: Tx, request: HandlerRequest<E>, world: World): Promise<Accepted>;
  awaitOutcome(request: HandlerRequest<E>, accepted: Accepted): Promise<ReplyTo<E>>;
}

export interface StreamEvent {
  id?: string;
  event?: string;
  data: unknown;
}

/**
 * The handler of a server-sent event stream. It checks the caller's rights, then returns the events. Refusals before
 * the first event are ordinary problems. The handler returns null if the client already has the last event that there
 * will be. The client then gets 204, which tells an EventSource not to reconnect.
 */
export interface StreamHandlers<E extends EndpointDefinition> {
  stream(
    request: HandlerRequest<E> & { lastEventId: string | undefined; signal: AbortSignal },
  ): Promise<AsyncIterable<StreamEvent> | null>;
}

/** A route without the types of its endpoint; see {@link route}. */
export interface Route<Tx> {
  endpoint: EndpointDefinition;
  read?(request: HandlerRequest<EndpointDefinition>): Promise<Reply>;
  preload?(request: HandlerRequest<EndpointDefinition>): Promise<unknown>;
  execute?(tx: Tx, request: HandlerRequest<EndpointDefinition>, world: unknown): Promise<unknown>;
  awaitOutcome?(request: HandlerRequest<EndpointDefinition>, accepted: unknown): Promise<Reply>;
  beforeAnswer?(request: HandlerRequest<EndpointDefinition>): Promise<void>;
  replaySecret?: {
    remove(body: unknown): unknown;
    rehydrate(stored: unknown, rawIdempotencyKey: string, request: HandlerRequest<EndpointDefinition>): unknown;
  };
  stream?: StreamHandlers<EndpointDefinition>['stream'];
}

export type Handlers<E extends EndpointDefinition, Tx, World, Accepted> =
  | ReadHandlers<E>
  | ExecuteHandlers<E, Tx, World>
  | AwaitHandlers<E, Tx, World, Accepted>
  | StreamHandlers<E>;

/**
 * Binds an endpoint of the contract to its handlers, which have exactly the endpoint's types. The result may drop these
 * types, because the parser that gives the handlers their input is built from the same endpoint.
 */
export function route<const E extends EndpointDefinition, Tx, World, Accepted>(
  endpoint: E,
  handlers: Handlers<E, Tx, World, Accepted>,
): Route<Tx> {
  return { endpoint, ...handlers };
}

/**
 * A path for processes of Drydock, `/internal/…`. It needs an internal token, and the gateway routes no customer's call
 * to it.
 */
export interface InternalRoute {
  method: 'GET' | 'POST';
  path: `/internal/${string}`;
  /**
   * The callers that may use the path, with the keys with which each signs. A key gives access only to the paths that
   * list it.
   */
  issuers: Readonly<Record<string, readonly KeyObject[]>>;
  body?: z.ZodType;
  handle(request: { body: unknown; issuer: string; requestId: string; now: Date }): Promise<Reply>;
}

/** Makes an internal route. The handler gets a body of the type that the schema `body` gives. */
export function internalRoute<Body extends z.ZodType>(definition: {
  method: 'POST';
  path: `/internal/${string}`;
  issuers: Readonly<Record<string, readonly KeyObject[]>>;
  body: Body;
  handle(request: { body: z.output<Body>; issuer: string; requestId: string; now: Date }): Promise<Reply>;
}): InternalRoute {
  return definition;
}

const parameter = /\{([^}]+)\}/g;

/** The path in Express' form: `/v1/sites/{siteId}` becomes `/v1/sites/:siteId`. */
export const patternOf = (path: string): string => path.replaceAll(parameter, ':$1');

/**
 * The endpoints of `promised` that belong to the service and have no handler yet. Throws if an endpoint is mounted
 * twice or belongs to another service. Unless `mayBeMissing`, throws if any is missing, because only a developer may
 * start an incomplete service.
 */
export function findUnmounted<E extends Pick<EndpointDefinition, 'id' | 'service'>>(
  service: string,
  mounted: readonly Pick<EndpointDefinition, 'id'>[],
  promised: readonly E[],
  mayBeMissing: boolean,
): E[] {
  const left = promised.filter((endpoint) => endpoint.service === service);
  for (const { id } of mounted) {
    const at = left.findIndex((endpoint) => endpoint.id === id);
    if (at < 0) throw new Error(`${service} mounts ${id}, which is not its own or is mounted already`);
    left.splice(at, 1);
  }
  if (left.length > 0 && !mayBeMissing)
    throw new Error(`${service} does not mount ${left.map(({ id }) => id).join(', ')}`);
  return left;
}

export const pathWith = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replaceAll(parameter, (_placeholder, name: string) => encodeURIComponent(params[name] ?? ''));

export const parametersOf = (path: string): string[] => [...path.matchAll(parameter)].flatMap(([, name]) => name ?? []);

/**
 * Sorts routes with a literal segment before those with a parameter in its place, so that `/v1/sites/deleted` is not
 * taken for a site named deleted. `~` sorts after every letter.
 */
export function sortRoutes<R extends { endpoint: Pick<EndpointDefinition, 'path'> }>(routes: readonly R[]): R[] {
  const order = ({ endpoint }: R): string => endpoint.path.replaceAll(parameter, '~');
  return [...routes].sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

/** The methods that a concrete path has, for `Allow`; empty if there is no such path. */
export function methodsOf(endpoints: readonly EndpointDefinition[], path: string): string[] {
  const matching = endpoints.filter((endpoint) => isAt(endpoint.path, path));
  return [...new Set(matching.map(({ method }) => method))].sort();
}

export function isAt(template: string, path: string): boolean {
  const [segments, given] = [template.split('/'), path.split('/')];
  return segments.length === given.length && segments.every((segment, index) => fits(segment, given[index]));
}

/** Whether a segment matches. As in Express, a parameter matches any text but an empty one. */
const fits = (segment: string, given: string | undefined): boolean =>
  segment.startsWith('{') ? given !== '' : segment === given;
