import type { Server } from 'node:http';
import { endpoints as allEndpoints } from '@drydock/contracts/endpoints';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import { scaled } from '@drydock/process';
import express, { type ErrorRequestHandler, type Express } from 'express';
import { rememberTokens, tokenKeys } from '../access/internal-token';
import { createTurns } from '../access/turns';
import type { Database } from '../database/sql';
import { type IdempotencyLimits, idempotencyLimits } from '../effects/idempotency';
import { type ApiConfig, checksReplies, isDevelopment, type ServiceConfig } from '../process/config';
import { databaseReady, type Foundation, type Process, type ReadyChecks } from '../process/run-process';
import type { Log } from '../telemetry/log';
import { continueTraces } from '../telemetry/telemetry';
import { answerWithinMs } from './answer';
import { type ExchangeKit, runExchange } from './exchange';
import { authenticateRequest, createHandler, createInternalHandler, type HandleKit } from './handle';
import { answerHealth, answerReady } from './health';
import { closeServer, createHttpServer, listen, waitUntilNobodyIsConnected } from './http-server';
import { findUnmounted, type InternalRoute, methodsOf, patternOf, type Route, sortRoutes } from './route';
import { createStreams, type StreamLimits, streamLimits } from './stream';

export interface ServiceOptions<Tx> {
  /** The audience of the tokens that the service accepts, such as `keys` or `hosting`. */
  name: string;
  routes: readonly Route<Tx>[];
  internalRoutes?: readonly InternalRoute[];
  /** Endpoints of the service's contract that have no handler yet. They answer 501. */
  unmounted?: readonly EndpointDefinition[];
  database: Database<Tx>;
  /** The secrets that the service shares only with the gateway, in hex and separated by commas. */
  tokenSecret: string;
  log: Log;
  ready: ReadyChecks;
  idempotency?: Partial<IdempotencyLimits>;
  streams?: Partial<StreamLimits>;
  /** Milliseconds after which a request is answered even if its handler has not ended. The gateway waits longer. */
  answerWithinMs?: number;
  /** Called after each commit of a request that changes something. It must not throw. */
  changed?: () => void;
  /** Whether answers are compared with the contract. By default they are compared only in tests and development. */
  checksReplies?: boolean;
}

export interface Service {
  app: Express;
  server: Server;
  /** Listens on `port`, or on a free port if it is 0. `host` defaults to loopback. */
  listen(port: number, host?: string): Promise<{ url: string; port: number }>;
  /**
   * Reports not ready, ends streams, and sends `Connection: close` with every answer, so that gateways use other
   * processes. It keeps answering until nobody is connected, at most for `withinMs`.
   */
  drain(withinMs: number): Promise<void>;
  /** Accepts no new connection. Resolves when the last running request is answered. */
  close(): Promise<void>;
}

/** Makes the HTTP server of a process from a list of routes. {@link composeApiProcess} makes the whole process. */
export function createService<Tx>(options: ServiceOptions<Tx>): Service {
  let closing = false;
  const streams = createStreams({ ...streamLimits, ...options.streams });
  const kit: HandleKit<Tx> = {
    service: options.name,
    keys: tokenKeys(options.tokenSecret),
    usedTokens: rememberTokens(),
    database: options.database,
    log: options.log,
    limits: { ...idempotencyLimits, waitMs: scaled(idempotencyLimits.waitMs), ...options.idempotency },
    streams,
    turns: createTurns(),
    answerWithinMs: options.answerWithinMs ?? scaled(answerWithinMs),
    checksReplies: options.checksReplies ?? checksReplies(),
    changed: options.changed,
    isClosing: () => closing,
    traces: continueTraces(),
  };
  const app = createApp();
  mountHealth(app, kit, options.ready);
  const unmounted = options.unmounted ?? [];
  const routes: Route<Tx>[] = [...options.routes, ...unmounted.map((endpoint) => ({ endpoint }))];
  for (const route of sortRoutes(routes)) {
    if (unmounted.includes(route.endpoint)) mountUnwritten(app, kit, route.endpoint);
    else mountRoute(app, kit, route);
  }
  for (const route of options.internalRoutes ?? []) mountInternal(app, kit, route);
  mountRefusals(
    app,
    kit,
    routes.map(({ endpoint }) => endpoint),
  );
  const server = createHttpServer(app);
  return {
    app,
    server,
    listen: (port, host) => listen(server, port, host),
    drain: async (withinMs) => {
      closing = true;
      streams.endOpen();
      await waitUntilNobodyIsConnected(server, withinMs);
    },
    close: async () => {
      closing = true;
      streams.close();
      await closeServer(server);
    },
  };
}

/**
 * Makes the Express application. Only the router of Express is used. Bodies, queries and answers are handled in this
 * package. `/X/` is not the same path as `/x`.
 */
function createApp(): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('case sensitive routing');
  app.enable('strict routing');
  return app;
}

function mountHealth(app: Express, kit: ExchangeKit, ready: ReadyChecks): void {
  // Probes come every second. Only their failures are logged, and metrics count no probe.
  const quiet: ExchangeKit = { ...kit, traces: undefined, log: kit.log.child({}, { level: 'warn' }) };
  app.get('/healthz', (request, response) =>
    runExchange(quiet, request, response, 'GET /healthz', async () => answerHealth()),
  );
  app.get('/readyz', (request, response) =>
    runExchange(quiet, request, response, 'GET /readyz', () => answerReady(ready, kit.isClosing(), quiet.log)),
  );
}

const verbs = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const;

function mountRoute<Tx>(app: Express, kit: HandleKit<Tx>, route: Route<Tx>): void {
  const { method, path } = route.endpoint;
  const handle = createHandler(kit, route);
  app[verbs[method]](patternOf(path), (request, response, next) => {
    // Without this check Express would answer HEAD with the handler of GET. Here a method must be in the contract.
    if (request.method !== method) next();
    else runExchange(kit, request, response, `${method} ${path}`, (exchange) => handle(exchange, request.params));
  });
}

/**
 * Answers 501 for an endpoint that is not written yet. The answer has no problem code, because the contract has none
 * for it. Customers never see the answer, because only a developer may start an incomplete service.
 */
function mountUnwritten<Tx>(app: Express, kit: HandleKit<Tx>, { id, method, path }: EndpointDefinition): void {
  const detail = `${kit.service} does not mount ${id} yet: add it to services/${kit.service}/src/routes.ts`;
  app[verbs[method]](patternOf(path), (request, response) =>
    runExchange(kit, request, response, `${method} ${path}`, async (exchange) => {
      authenticateRequest(exchange, kit);
      const body = {
        type: 'about:blank',
        title: 'Not mounted yet',
        status: 501,
        detail,
        request_id: exchange.context.request_id,
      };
      return { status: 501, headers: { 'content-type': 'application/problem+json' }, text: JSON.stringify(body) };
    }),
  );
}

function mountInternal<Tx>(app: Express, kit: HandleKit<Tx>, route: InternalRoute): void {
  const handle = createInternalHandler(kit, route);
  app[verbs[route.method]](route.path, (request, response) =>
    runExchange(kit, request, response, `${route.method} ${route.path}`, handle),
  );
}

/**
 * Refuses requests with an unknown path or method. The gateway's token is checked first, so only the gateway learns
 * which paths exist.
 */
function mountRefusals<Tx>(app: Express, kit: HandleKit<Tx>, endpoints: readonly EndpointDefinition[]): void {
  app.use((request, response) =>
    runExchange(kit, request, response, 'none', async (exchange) => {
      authenticateRequest(exchange, kit);
      const methods = methodsOf(endpoints, request.path);
      if (methods.length === 0) throw problem('route_not_found');
      throw problem('method_not_allowed', { extra: { allow: methods.join(', ') } });
    }),
  );
  // Express' router itself fails only for a path with wrong percent-encoding.
  const refuseBrokenPath: ErrorRequestHandler = (error: unknown, request, response, _next) => {
    runExchange(kit, request, response, 'none', async (exchange) => {
      authenticateRequest(exchange, kit);
      throw error instanceof URIError ? problem('route_not_found') : error;
    });
  };
  app.use(refuseBrokenPath);
}

export interface ApiProcess extends Process {
  service: Service;
}

/** Work of a process that is not part of a request. */
interface Beside {
  start(): void;
  stop(): unknown;
}

interface ApiOptions<Tx>
  extends Pick<ServiceOptions<Tx>, 'name' | 'routes' | 'internalRoutes' | 'streams' | 'changed'> {
  /**
   * Work that runs beside the requests. Each key is the name of the work in the log. The work starts right before the
   * first request is accepted. It stops once no caller is connected or the drain is over, and before the server closes.
   */
  beside?: Readonly<Record<string, Beside>>;
}

/**
 * How long running requests may continue while the process closes. The rest of `shutdownLimitMs` is for the resources
 * that are closed afterwards, such as the database.
 */
const closeMs = 15_000;

/**
 * Composes the process that answers requests. Everything that the handlers use must have been opened before, and is
 * closed after the server.
 */
export function composeApiProcess<Tx>(
  { log, lifetime, database }: Foundation<Database<Tx>>,
  config: Pick<ServiceConfig, 'HOST' | 'PORT' | 'INTERNAL_TOKEN_SECRET'> & ApiConfig,
  { beside = {}, ...served }: ApiOptions<Tx>,
): ApiProcess {
  const mounted = served.routes.map(({ endpoint }) => endpoint);
  const service = createService({
    ...served,
    unmounted: findUnmounted(served.name, mounted, allEndpoints, isDevelopment()),
    database,
    tokenSecret: config.INTERNAL_TOKEN_SECRET,
    log,
    ready: databaseReady(database),
  });
  lifetime.onClose('http', () => service.close(), closeMs);
  for (const [name, work] of Object.entries(beside)) lifetime.onClose(name, () => work.stop());
  const drainMs = config.DRAIN_SECONDS * 1_000;
  lifetime.onClose('drain', () => service.drain(drainMs), drainMs + 1_000);
  return {
    log,
    lifetime,
    service,
    start: () => {
      for (const work of Object.values(beside)) work.start();
      return service.listen(config.PORT, config.HOST);
    },
  };
}
