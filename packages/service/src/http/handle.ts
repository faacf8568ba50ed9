import type { KeyObject } from 'node:crypto';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import { authenticateInternal, authenticateRequest, type Verifier } from '../access/authenticate';
import { authorise } from '../access/authorise';
import { assertBound, callerOf } from '../access/internal-token';
import type { Turns } from '../access/turns';
import type { Database } from '../database/sql';
import { type IdempotencyLimits, readIdempotencyKey } from '../effects/idempotency';
import { type Afterwards, type Asked, perform } from '../effects/perform';
import { systemNowMs } from '../process/clock';
import { type Answer, answerOf } from './answer';
import { answerInTime } from './answer-in-time';
import { replyChecks } from './check-reply';
import { assertMatch, tagged } from './entity-tag';
import type { Exchange, ExchangeKit } from './exchange';
import { parseJsonBody } from './json-body';
import { requestParser } from './parse-request';
import { readBody } from './raw-body';
import type { HandlerRequest, InternalRoute, Route } from './route';
import { pathWith } from './route-table';
import type { Streams } from './stream';

export interface HandleKit<Tx> extends ExchangeKit, Verifier {
  keys: readonly KeyObject[];
  database: Database<Tx>;
  limits: IdempotencyLimits;
  streams: Streams;
  turns: Turns;
  answerWithinMs: number;
  checksReplies: boolean;
}

/** The path parameters in Express' form. */
export type PathValues = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The handler of one route, in the order of the specification: token, permission, syntax (body and query, then ids),
 * and the effect. Everything that can be built once is built here, not per request.
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
  };
  const limits = { service: kit.service, log: kit.log, withinMs: kit.answerWithinMs };
  const run = async (
    exchange: Exchange,
    request: HandlerRequest<EndpointDefinition>,
    afterwards: Afterwards,
    asked: Asked,
  ) => {
    if (route.stream !== undefined) return kit.streams.run(kit, exchange, request, route.stream);
    return answerInTime(limits, async (time) => perform({ ...performance, time }, route, request, afterwards, asked));
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
      traceparent: exchange.traceparent,
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

/** The same for an internal path: token, body, handler. */
export function createInternalHandler(kit: Verifier, route: InternalRoute): (exchange: Exchange) => Promise<Answer> {
  return async (exchange) => {
    const bytes = await readBody(exchange.request);
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
