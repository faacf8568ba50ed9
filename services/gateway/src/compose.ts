import { setMaxListeners } from 'node:events';
import type { Server } from 'node:http';
import { availableParallelism } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { endpoints as allEndpoints } from '@drydock/contracts/endpoints';
import type { EndpointDefinition, ServiceName } from '@drydock/contracts/platform/endpoint';
import { scaled } from '@drydock/process';
import { createShares, type Shares } from '@drydock/service/access';
import { closeServer, listen, streamLimits, streamShares } from '@drydock/service/http';
import type { ReadyChecks } from '@drydock/service/process';
import type { Log, RequestTraces } from '@drydock/service/telemetry';
import { networksOf } from './address';
import { createListener } from './app';
import { createAskKeys, createAuthenticate, createFailureThrottle } from './authenticate';
import type { GatewayConfig } from './config';
import { createForward } from './forward';
import { createGatewayServer } from './gateway-server';
import { createPipeline, createRequestLog } from './pipeline';
import { createCallerShares, createPlaces, type NewCallLimits } from './places';
import { createLimit, createQuotas, openQuotaStore, type QuotaStore, quotaHeaders } from './quota';
import { createRouteTable } from './route-table';
import { createUpstream, type Upstream, type UpstreamLimits, upstreamLimits } from './upstream';
import { createVerificationCache } from './verification-cache';

export interface GatewayLimits extends NewCallLimits {
  /**
   * The most calls that are answered at the same time. Measured with 10,000 connections: without a limit there were
   * 2,291 errors and a p99 of 21 s; with a limit of 200 there was no error, and the p99 was 2 s.
   */
  inFlightMax: number;
  /** The most calls that wait until their caller may begin a further call. */
  waitingMax: number;
  waitMs: number;
  /** The most bodies that are received at the same time. A body has at most 100 KiB. */
  bodiesMax: number;
  /**
   * The most event streams of one service. Each process of the service has the same limit. The gateway refuses further
   * streams itself, because asking the service costs more than the refusal.
   */
  streamsMax: number;
  /** The most connections, idle ones included. One address may have at most half of them. */
  connectionsMax: number;
  /** The most simultaneous look-ups of tokens that are unknown or were refused the last time. */
  lookUpsMax: number;
  /** The most failed look-ups that one address may cause in ten seconds. */
  failedLookUpsMax: number;
  /** The most pages that are sent at the same time. Pages need no key. */
  pagesMax: number;
  upstream: UpstreamLimits;
}

/** The number of simultaneous calls that keeps a service and its ten connections to Postgres busy. */
const burstMax = 16;

export const gatewayLimits: GatewayLimits = {
  inFlightMax: 200,
  burstMax,
  // The number of simultaneous calls that keeps the processors busy.
  steadyMax: Math.min(burstMax, Math.max(2, availableParallelism())),
  newMs: scaled(250),
  calmMs: scaled(1_000),
  aloneMs: 60_000,
  waitingMax: 600,
  waitMs: scaled(1_000),
  bodiesMax: 600,
  streamsMax: streamLimits.openMax,
  connectionsMax: 20_000,
  lookUpsMax: 64,
  failedLookUpsMax: 100,
  pagesMax: 64,
  upstream: upstreamLimits,
};

export interface Gateway {
  server: Server;
  listen(port: number, host?: string): Promise<{ url: string; port: number }>;
  /**
   * Ends streams and keeps answering for `drainMs`, each answer with `Connection: close`, so that clients leave by
   * themselves. Meanwhile a balancer sees that the gateway is not ready. Then the gateway stops listening, completes
   * running requests and closes everything.
   */
  close(): Promise<void>;
  /** The number of calls in progress. Event streams and pages do not count. */
  readonly inFlight: number;
}

export interface GatewayOptions {
  config: GatewayConfig;
  log: Log;
  limits?: Partial<GatewayLimits>;
  endpoints?: readonly EndpointDefinition[];
  /** Absent when telemetry is off. */
  traces?: RequestTraces;
}

export function composeGateway({
  config,
  log,
  limits: given = {},
  endpoints = allEndpoints,
  traces,
}: GatewayOptions): Gateway {
  const limits = { ...gatewayLimits, ...given };
  const closing = new AbortController();
  const drained = new AbortController();
  const streams = createStreamShares(limits.streamsMax);
  // Each open stream adds a listener, so this maximum keeps Node from reporting a leak.
  setMaxListeners(Object.keys(streams).length * limits.streamsMax + 1, closing.signal, drained.signal);
  const isClosing = (): boolean => closing.signal.aborted;
  const upstreams = createUpstreams(config, log, limits.upstream);
  const store = config.redisUrl === undefined ? undefined : openQuotaStore(config.redisUrl, log);
  const quotas = createQuotas(config.rateLimitScale);
  const proxies = config.trustedProxies.length === 0 ? undefined : networksOf(config.trustedProxies);
  const places = createPlaces({ ...limits, placesMax: limits.inFlightMax });
  const handle = createPipeline({
    routes: createRouteTable(endpoints),
    authenticate: createAuthenticate({
      cache: createVerificationCache({ ask: createAskKeys(upstreams.keys) }),
      throttle: createFailureThrottle({ failuresMax: limits.failedLookUpsMax, windowMs: 10_000 }),
      lookUps: createShares(limits.lookUpsMax, [1]),
      proxies,
    }),
    quotas,
    limit: createLimit(quotas, store),
    forward: createForward({ upstreams, log, closing: closing.signal, drained: drained.signal }),
    places,
    streams,
    bodies: createCallerShares(limits.bodiesMax),
    requestLog: createRequestLog(log),
    traces,
    isClosing,
  });
  const pages = createShares(limits.pagesMax, [1]);
  const checks = readyChecks(upstreams);
  const listener = createListener({ handle, checks, pages, proxies, log, quotas, isClosing });
  const server = createGatewayServer(listener, createShares(limits.connectionsMax, [1]), quotaHeaders(quotas.read));
  return {
    server,
    listen: (port, host) => listen(server, port, host),
    close: async () => {
      closing.abort();
      await wait(config.drainMs);
      drained.abort();
      await closeServer(server);
      await closeConnections(upstreams, store);
    },
    get inFlight() {
      return places.taken;
    },
  };
}

/** Gives each service's streams the same number and the same shares as the service itself does. */
function createStreamShares(max: number): Readonly<Record<ServiceName, Shares>> {
  const shares = (): Shares => createShares(max, streamShares);
  return { keys: shares(), hosting: shares(), compute: shares(), agency: shares(), databases: shares() };
}

type Upstreams = Partial<Record<ServiceName, Upstream>> & { keys: Upstream };

function createUpstreams(config: GatewayConfig, log: Log, limits: UpstreamLimits): Upstreams {
  const { keys, ...others } = config.upstreams;
  const upstreams: Upstreams = { keys: createUpstream('keys', keys, log, limits) };
  for (const name of ['hosting', 'compute', 'agency', 'databases'] as const) {
    const upstream = others[name];
    if (upstream !== undefined) upstreams[name] = createUpstream(name, upstream, log, limits);
  }
  return upstreams;
}

/**
 * Without the keys service nobody can be authenticated, so the gateway is not ready. The failure of any other service
 * stops only the calls of that service, so its state is only reported.
 */
const readyChecks = ({ keys, ...others }: Upstreams): { needed: ReadyChecks; informative: ReadyChecks } => ({
  needed: probesOf([keys]),
  informative: probesOf(Object.values(others)),
});

const probesOf = (upstreams: readonly Upstream[]): ReadyChecks =>
  Object.fromEntries(upstreams.map(({ name, replicas }) => [name, shareRuns(() => replicas.probe())]));

/**
 * Shares one run between all callers that ask while it runs. /readyz needs no key, so its callers must not be able to
 * keep the services' connections busy.
 */
function shareRuns(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
}

async function closeConnections(upstreams: Upstreams, store: QuotaStore | undefined): Promise<void> {
  store?.close();
  await Promise.all(Object.values(upstreams).map((upstream) => upstream.close()));
}
