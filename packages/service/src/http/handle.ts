import type { KeyObject } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type EndpointDefinition, problemCodesOf } from '@drydock/contracts/platform/endpoint';
import { Problem, problem } from '@drydock/contracts/platform/problem';
import {
  assertBound,
  authorise,
  callerOf,
  type RequestClaims,
  systemNowMs,
  TokenRefusal,
  verifyInternalToken,
  verifyRequestToken,
} from '../access/internal-token';
import type { ReplayMemory } from '../access/replay-memory';
import type { Turns } from '../access/turns';
import type { Database } from '../database/sql';
import { type IdempotencyLimits, readIdempotencyKey } from '../effects/idempotency';
import { type Afterwards, type Asked, perform } from '../effects/perform';
import { type Answer, answerInTime, answerOf } from './answer';
import { assertMatch, tagged } from './entity-tag';
import type { Exchange, ExchangeKit } from './exchange';
import { internalBodyBytesMax, parseJsonBody, readBody } from './json-body';
import { requestParser } from './parse-request';
import { type HandlerRequest, type InternalRoute, pathWith, type Reply, type Route } from './route';
import type { Streams } from './stream';

const bearerForm = /^Bearer ([A-Za-z0-9_.-]+)$/;

/**
 * The bearer token of a request. A request with two Authorization headers is refused, because Node would silently use
 * the first.
 */
function bearerToken(request: IncomingMessage): string {
  const given = request.rawHeaders.filter(
    (name, index) => index % 2 === 0 && name.toLowerCase() === 'authorization',
  ).length;
  const token = given === 1 ? bearerForm.exec(request.headers.authorization ?? '')?.[1] : undefined;
  if (token === undefined) throw new TokenRefusal(given === 0 ? 'none' : 'no single bearer token');
  return token;
}

const lineOf = (request: IncomingMessage): { method: string; path: string } => ({
  method: request.method ?? '',
  path: request.url ?? '',
});

/** The facts about this process that the verification of a token needs. */
export interface Verifier {
  /** The name of the service, which is the audience of its tokens. */
  service: string;
  usedTokens: ReplayMemory;
}

/** Authenticates the gateway's token on a customer's call, without I/O. Throws {@link TokenRefusal}. */
export function authenticateRequest(
  exchange: Exchange,
  { keys, service, usedTokens }: Verifier & { keys: readonly KeyObject[] },
): RequestClaims {
  const { request, context } = exchange;
  const expected = { keys, audience: service, issuer: 'gateway', used: usedTokens, ...lineOf(request) };
  const claims = verifyRequestToken(bearerToken(request), expected);
  context.request_id = claims.request_id;
  context.org_id = claims.org_id;
  return claims;
}

/**
 * Authenticates a call from a process of Drydock to an internal path. Returns the name of the process, which is the
 * issuer whose key has signed the token.
 */
export function authenticateInternal(
  exchange: Exchange,
  issuers: Readonly<Record<string, readonly KeyObject[]>>,
  { service, usedTokens }: Verifier,
  body: Uint8Array,
): string {
  const { request, context } = exchange;
  const token = bearerToken(request);
  let refusal: unknown = new TokenRefusal('nobody may call this');
  for (const [issuer, keys] of Object.entries(issuers)) {
    try {
      const claims = verifyInternalToken(token, {
        keys,
        issuer,
        audience: service,
        used: usedTokens,
        ...lineOf(request),
      });
      assertBound(claims, { body });
      context.request_id = claims.request_id;
      return issuer;
    } catch (error) {
      refusal = error;
    }
  }
  throw refusal;
}

const nothing = (): void => undefined;

/**
 * Compares a handler's replies and refusals with the endpoint's contract. A difference is thrown and becomes a 500, so
 * that tests find it. Does nothing unless `enabled`.
 */
function replyChecks(
  endpoint: EndpointDefinition,
  enabled: boolean,
): { reply(reply: Reply): void; refusal(error: unknown): void } {
  if (!enabled) return { reply: nothing, refusal: nothing };
  const { status, schema } = endpoint.response;
  const codes = new Set(problemCodesOf(endpoint));
  return {
    reply: (reply) => {
      if (reply.status !== status)
        throw new Error(`${endpoint.id} answered ${reply.status}, its contract says ${status}`);
      if (schema === undefined || endpoint.response.contentType !== undefined) return;
      // The reply is checked after it was converted to JSON, as the caller will see it.
      const parsed = schema.safeParse(reply.body === undefined ? undefined : JSON.parse(JSON.stringify(reply.body)));
      if (!parsed.success)
        throw new Error(`${endpoint.id} answered what its contract does not know: ${parsed.error.message}`);
    },
    refusal: (error) => {
      if (error instanceof Problem && !codes.has(error.code)) {
        throw new Error(`${endpoint.id} refused with ${error.code}, which its contract does not list`, {
          cause: error,
        });
      }
    },
  };
}

export interface HandleKit<Tx> extends ExchangeKit, Verifier {
  keys: readonly KeyObject[];
  database: Database<Tx>;
  limits: IdempotencyLimits;
  streams: Streams;
  turns: Turns;
  answerWithinMs: number;
  checksReplies: boolean;
  changed: (() => void) | undefined;
}

/** The values of path parameters, as Express gives them. */
type PathValues = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Makes the handler of one route. The handler checks in the order of the specification: token, permission, syntax
 * (Idempotency-Key, query and body, then ids). Then it runs the route. Everything that does not depend on a request is
 * built once.
 */
export function createHandler<Tx>(
  kit: HandleKit<Tx>,
  route: Route<Tx>,
): (exchange: Exchange, params: PathValues) => Promise<Answer | undefined> {
  const { endpoint } = route;
  const parse = requestParser(endpoint);
  const checks = replyChecks(endpoint, kit.checksReplies);
  const performance = {
    database: kit.database,
    limits: kit.limits,
    log: kit.log,
    turns: kit.turns,
    checkReply: checks.reply,
    changed: kit.changed,
  };
  const limits = { service: kit.service, log: kit.log, withinMs: kit.answerWithinMs };
  const run = async (
    exchange: Exchange,
    request: HandlerRequest<EndpointDefinition>,
    afterwards: Afterwards,
    asked: Asked,
  ) => {
    if (route.stream !== undefined) return kit.streams.run(kit, exchange, request, route.stream);
    const isRepeatable = request.idempotencyKey !== undefined;
    return answerInTime({ ...limits, isRepeatable }, async (time) =>
      perform({ ...performance, time }, route, request, afterwards, asked),
    );
  };
  return async (exchange, params) => {
    const { headers, url = '' } = exchange.request;
    const claims = authenticateRequest(exchange, kit);
    const caller = callerOf(claims);
    authorise(endpoint.permissions, caller);
    const body = await readBody(exchange.request);
    const rawKey = headerOf(headers['idempotency-key']);
    const ifMatch = endpoint.method === 'PATCH' ? headerOf(headers['if-match']) : undefined;
    assertBound(claims, { body, idempotencyKey: rawKey, ifMatch });
    const idempotencyKey = readIdempotencyKey(endpoint, rawKey);
    const search = searchOf(url);
    const { sentBody, ...parsed } = parse({
      params,
      search,
      body,
      contentType: headers['content-type'],
      contentEncoding: headers['content-encoding'],
    });
    const afterwards: Afterwards = { works: [] };
    const request = {
      ...parsed,
      caller,
      requestId: claims.request_id,
      idempotencyKey,
      now: new Date(systemNowMs()),
      traceparent: exchange.trace?.traceparent,
      assertMatch: (read: () => unknown) => assertMatch(ifMatch, read),
      afterCommit: (work: () => unknown) => {
        afterwards.works.push(work);
      },
    } as HandlerRequest<EndpointDefinition>;
    try {
      const asked = { path: pathWith(endpoint.path, parsed.params), body: sentBody, query: parsed.query ?? {} };
      const answer = await run(exchange, request, afterwards, asked);
      return answer === undefined ? undefined : tagged(endpoint, answer, headers['if-none-match']);
    } catch (error) {
      checks.refusal(error);
      throw error;
    }
  };
}

export function createInternalHandler(kit: Verifier, route: InternalRoute): (exchange: Exchange) => Promise<Answer> {
  return async (exchange) => {
    const bytes = await readBody(exchange.request, internalBodyBytesMax);
    const issuer = authenticateInternal(exchange, route.issuers, kit, bytes);
    const body = route.body?.safeParse(parseJsonBody(bytes, 'malformed_json'));
    if (body?.success === false) throw problem('invalid_request', { internal: body.error.message });
    const reply = await route.handle({
      body: body?.data,
      issuer,
      requestId: exchange.context.request_id,
      now: new Date(systemNowMs()),
    });
    return answerOf(reply);
  };
}

const headerOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value;

function searchOf(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at + 1);
}
