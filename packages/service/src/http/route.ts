import type { KeyObject } from 'node:crypto';
import type { BodyOf, EndpointDefinition, ParamsOf, QueryOf, ResponseOf } from '@drydock/contracts/platform/endpoint';
import type { z } from 'zod';
import type { Caller } from '../access/internal-token';

/** The parsed request that a handler gets; it has nothing else. */
export interface HandlerRequest<E extends EndpointDefinition> {
  params: ParamsOf<E>;
  query: QueryOf<E>;
  body: BodyOf<E>;
  caller: Caller;
  requestId: string;
  /** The raw key, for endpoints that derive a secret from it. Never store it. */
  idempotencyKey: string | undefined;
  now: Date;
  /** W3C traceparent of this request while tracing is on; workflows continue it. */
  traceparent: string | undefined;
  /**
   * Throws 412 unless the caller's If-Match still names the record. A PATCH calls it as soon as it has locked the
   * record, with the answer of GET; `read` is not called without such a header.
   */
  assertMatch(read: () => ResponseOf<E> | Promise<ResponseOf<E>>): Promise<void>;
  /**
   * Runs once the effect is committed (enqueue a job), and never after a rollback. Its failure is logged, not answered.
   */
  afterCommit(work: () => unknown): void;
}

/** `headers` are part of the answer that an Idempotency-Key replays (Location, Retry-After). */
export type ReplyTo<E extends EndpointDefinition> = {
  status: E['response']['status'];
  headers?: Record<string, string>;
} & (E['response'] extends {
  schema: z.ZodType;
}
  ? { body: ResponseOf<E> }
  : { body?: never });

/** A reply without its endpoint's types. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

/**
 * The part of an answer with a secret that is stored for a replay, and the way to restore the whole answer from it. The
 * secret itself is stored nowhere.
 */
export interface ReplaySecret<E extends EndpointDefinition> {
  remove(body: ResponseOf<E>): unknown;
  /**
   * Must return exactly the body that was sent, which is checked before the first answer is committed. `stored` is the
   * result of `remove`, after JSON.
   */
  rehydrate(stored: unknown, rawIdempotencyKey: string, request: HandlerRequest<E>): ResponseOf<E>;
}

/** A GET, or a POST that changes nothing: without a transaction. */
export interface ReadHandlers<E extends EndpointDefinition> {
  read(request: HandlerRequest<E>): Promise<ReplyTo<E>>;
}

export interface ExecuteHandlers<E extends EndpointDefinition, Tx, World> {
  /** Reads the outside world, without a transaction. It may refuse. */
  preload?(request: HandlerRequest<E>): Promise<World>;
  /** The effect and nothing slow: one short transaction, tried up to three times if Postgres reports a conflict. */
  execute(tx: Tx, request: HandlerRequest<E>, world: World): Promise<ReplyTo<E>>;
  /** Absent when the answer contains no secret. */
  replaySecret?: ReplaySecret<E>;
  /**
   * Awaited between the commit and the answer, also for a replay. It is for effects that other processes see a moment
   * later.
   */
  beforeAnswer?(request: HandlerRequest<E>): Promise<void>;
}

/**
 * An effect whose answer is known only later: `execute` commits the accepted work (plain JSON), `awaitOutcome` waits
 * for its outcome outside any transaction. After a crash between the two, the same Idempotency-Key resumes at
 * `awaitOutcome`. Throw {@link outcomeUnknown} to leave it resumable on purpose.
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
 * A server-sent event stream. It checks the caller's rights, then returns the events. Refusals before the first event
 * are ordinary problems. Null when the client has had the last event that there will be: it gets 204, the only answer
 * after which an EventSource does not reconnect.
 */
export interface StreamHandlers<E extends EndpointDefinition> {
  stream(
    request: HandlerRequest<E> & { lastEventId: string | undefined; signal: AbortSignal },
  ): Promise<AsyncIterable<StreamEvent> | null>;
}

/** A route without its types; only {@link route} makes one. */
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
 * Binds an endpoint of the contract to its handlers, which see exactly the endpoint's types. The types are dropped here
 * and hold all the same, because the parser that feeds the handlers is built from the same endpoint.
 */
export function route<const E extends EndpointDefinition, Tx, World, Accepted>(
  endpoint: E,
  handlers: Handlers<E, Tx, World, Accepted>,
): Route<Tx> {
  return { endpoint, ...handlers };
}

/** A path for our own processes: `/internal/…`, with its own token, never routed from outside. */
export interface InternalRoute {
  method: 'GET' | 'POST';
  path: `/internal/${string}`;
  /** The callers that may use it, with the keys that each signs with. A key listed here opens this path only. */
  issuers: Readonly<Record<string, readonly KeyObject[]>>;
  body?: z.ZodType;
  handle(request: { body: unknown; issuer: string; requestId: string; now: Date }): Promise<Reply>;
}

/** Keeps the type of the body for the handler. */
export function internalRoute<Body extends z.ZodType>(definition: {
  method: 'POST';
  path: `/internal/${string}`;
  issuers: Readonly<Record<string, readonly KeyObject[]>>;
  body: Body;
  handle(request: { body: z.output<Body>; issuer: string; requestId: string; now: Date }): Promise<Reply>;
}): InternalRoute {
  return definition;
}
