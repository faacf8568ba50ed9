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
  /** W3C traceparent of this request while tracing is on; workflows carry it on. */
  traceparent: string | undefined;
  /**
   * Throws 412 unless the record is still what the caller's If-Match names. A PATCH calls it as soon as it holds the record, with what GET shows of it;
   * `read` is not called without such a header.
   */
  assertMatch(read: () => ResponseOf<E> | Promise<ResponseOf<E>>): Promise<void>;
  /** Runs once the effect is committed (enqueue a job), never when it was rolled back. Its failure is logged, not answered. */
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

/** Any reply, once the types of its endpoint have done their work. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

/** For an answer with a secret that is stored nowhere: what is kept for a replay, and how the whole is made again out of it. */
export interface ReplaySecret<E extends EndpointDefinition> {
  remove(body: ResponseOf<E>): unknown;
  /** Must give the very body that was sent; checked before the first answer is committed. `stored` is what `remove` gave, through JSON. */
  rehydrate(stored: unknown, rawIdempotencyKey: string, request: HandlerRequest<E>): ResponseOf<E>;
}

/** A GET, or a POST that changes nothing: no transaction. */
export interface ReadHandlers<E extends EndpointDefinition> {
  read(request: HandlerRequest<E>): Promise<ReplyTo<E>>;
}

export interface ExecuteHandlers<E extends EndpointDefinition, Tx, World> {
  /** Reads the outside world, in no transaction. May refuse. */
  preload?(request: HandlerRequest<E>): Promise<World>;
  /** The effect and nothing slow: one short transaction, tried up to three times when Postgres reports a conflict. */
  execute(tx: Tx, request: HandlerRequest<E>, world: World): Promise<ReplyTo<E>>;
  /** Left out without a secret in the answer. */
  replaySecret?: ReplaySecret<E>;
  /** Waited for between the commit and the answer, also of a replay: for an effect that is not seen everywhere at once. */
  beforeAnswer?(request: HandlerRequest<E>): Promise<void>;
}

/**
 * An effect whose answer is known only later: `execute` commits what was accepted (plain JSON), `awaitOutcome` waits for the outcome outside any transaction.
 * A crash in between resumes at `awaitOutcome` when the same Idempotency-Key comes again; throw {@link outcomeUnknown} to leave it resumable on purpose.
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
 * A server-sent event stream. Checks what may be seen, then gives the events; refusals before the first event are ordinary problems. Null: the client has had
 * all that there will ever be. It gets 204, the one answer upon which an EventSource does not come back.
 */
export interface StreamHandlers<E extends EndpointDefinition> {
  stream(request: HandlerRequest<E> & { lastEventId: string | undefined; signal: AbortSignal }): Promise<AsyncIterable<StreamEvent> | null>;
}

/** A route whose types have been erased; made by {@link route} alone. */
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
 * Binds an endpoint of the contract to what answers it. The handlers see exactly the endpoint's types.
 * The types are dropped here and hold nevertheless, since the parser that feeds the handlers is built from the same endpoint.
 */
export function route<const E extends EndpointDefinition, Tx, World, Accepted>(
  endpoint: E,
  handlers: Handlers<E, Tx, World, Accepted>,
): Route<Tx> {
  return { endpoint, ...handlers };
}

/** A path of ours for our own processes: `/internal/…`, with its own token, never routed from outside. */
export interface InternalRoute {
  method: 'GET' | 'POST';
  path: `/internal/${string}`;
  /** The callers that are let in, with the key that each signs with. A key that is listed here opens this path only. */
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
