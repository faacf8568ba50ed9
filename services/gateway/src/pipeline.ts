import type { IncomingMessage, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { problem } from '@drydock/contracts/problem';
import { authorise } from '@drydock/service-kit/authorise';
import { assertJsonContentType } from '@drydock/service-kit/json-body';
import { readBody } from '@drydock/service-kit/raw-body';
import type { Authenticate } from './authenticate';
import { type Exchange, openExchange } from './exchange';
import type { Forward } from './forward';
import { assertClean } from './hygiene';
import type { Places } from './in-flight';
import type { Limit } from './limit';
import { type Quota, type QuotaName, type QuotaUse, quotaPolicy, quotaState } from './quota';
import { refuse } from './refuse';
import type { RequestLog } from './request-log';
import type { RouteTable } from './route-table';

export interface PipelineKit {
  routes: RouteTable;
  authenticate: Authenticate;
  quotas: Readonly<Record<QuotaName, Quota>>;
  limit: Limit;
  forward: Forward;
  /** For requests, and apart from them for event streams: a thousand watchers must not keep a restore out. */
  places: Places;
  streamPlaces: Places;
  requestLog: RequestLog;
  isClosing(): boolean;
}

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * The way of every API request. The order of the checks is the specification's: a later one never answers for an earlier one.
 * Nothing is awaited that is there already: a wait costs as much as a check.
 */
export function createPipeline(kit: PipelineKit): Handle {
  return (request, response) => {
    const exchange = openExchange(request, response);
    const end = onceClosed(kit, exchange);
    serve(kit, exchange, end).catch((error: unknown) => refuse(exchange, error, kit.isClosing()));
  };
}

async function serve(kit: PipelineKit, exchange: Exchange, end: Ending): Promise<void> {
  const { request } = exchange;
  end.occupy(kit.places);
  const repeated = assertClean(request);
  const match = kit.routes.match(request.method ?? '', request.url ?? '');
  const { route } = match;
  exchange.route = route.label;
  if (route.isStream) end.occupy(kit.streamPlaces);
  const quota = route.endpoint.quota === 'exempt' ? undefined : kit.quotas[route.endpoint.quota];
  if (quota !== undefined) exchange.headers.push('RateLimit-Policy', quotaPolicy(quota));

  const known = kit.authenticate(request, repeated);
  const caller = known instanceof Promise ? await known : known;
  exchange.caller = caller;
  if (caller.mode === 'sandbox') exchange.headers.push('X-Drydock-Mode', 'sandbox');
  if (quota !== undefined) {
    const use = kit.limit(quota, caller);
    assertWithin(quota, use instanceof Promise ? await use : use, exchange);
  }
  authorise(route.endpoint.permissions, caller);
  if (route.endpoint.idempotency === 'accepted' && repeated.has('idempotency-key')) throw problem('idempotency_key_invalid');
  const body = route.endpoint.body === undefined ? nothing : await takeBody(exchange);
  await kit.forward(exchange, match, caller, body);
}

function assertWithin(quota: Quota, use: QuotaUse, exchange: Exchange): void {
  exchange.headers.push('RateLimit', quotaState(quota, use));
  if (use.isExceeded) throw problem('rate_limited', { retryAfterSeconds: use.resetSeconds });
}

const nothing = Buffer.alloc(0);

/** The syntax that the gateway alone can see; the rest is the service's. An endpoint without a body never reads one. */
async function takeBody({ request, response }: Exchange): Promise<Buffer> {
  const { headers } = request;
  if (request.destroyed && !request.complete) throw problem('invalid_request', { internal: 'the client went away' });
  if (headers.expect !== undefined) response.writeContinue();
  const body = await readBody(request);
  if (body.length > 0) assertJsonContentType(headers['content-type'], headers['content-encoding']);
  return body;
}

interface Ending {
  /** Takes a place and gives back the one held before: a stream leaves the place of a request for one of its own. */
  occupy(places: Places): void;
}

/** Whatever happens, a place is given back once and a line is logged once: when the answer is out or its client gone. */
function onceClosed(kit: PipelineKit, exchange: Exchange): Ending {
  const { response } = exchange;
  let held: Places | undefined;
  response.once('close', () => {
    held?.giveBack();
    if (!response.writableFinished) exchange.onClientGone?.();
    kit.requestLog(exchange, performance.now());
  });
  return {
    occupy: (places) => {
      places.take();
      held?.giveBack();
      held = places;
    },
  };
}
