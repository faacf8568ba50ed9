import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { crcOf } from '@drydock/contracts/platform/api-token';
import { type Child, startChild } from './children';
import { type LoadResult, runLoad } from './load';
import { median } from './measure';
import { printRows, type Row, say } from './report';

/** The supervisor and compose start the gateway with this flag. The peers get the same. */
const flags = ['--max-semi-space-size=64'];
const peersScript = path.join(__dirname, 'gateway-peers.js');
const telemetryPreload = path.resolve(__dirname, '../../../packages/service/dist/telemetry/telemetry.js');
const gatewayScript = path.resolve(__dirname, '../../../services/gateway/dist/server.js');

function token(): string {
  const unsigned = `dd_live_${'A1b2C3d4E5f6'}_${'x'.repeat(43)}`;
  return unsigned + crcOf(unsigned);
}

/**
 * The processes that are compared. They use the same trivial upstream and the same keys service. `stop` ends all of
 * them.
 */
async function startArena() {
  const started: Child[] = [];
  const start = async (script: string, env: Record<string, string>, options: Parameters<typeof startChild>[2] = {}): Promise<Child> => {
    const child = await startChild(script, env, { ...options, flags: [...flags, ...(options.flags ?? [])] });
    started.push(child);
    return child;
  };
  const upstream = await start(peersScript, { ROLE: 'upstream' });
  const keys = await start(peersScript, { ROLE: 'keys' });
  const secret = (): string => randomBytes(32).toString('hex');
  const startGateway = (env: Record<string, string> = {}): Promise<Child> =>
    start(
      gatewayScript,
      {
        SERVICE_NAME: 'gateway',
        KEYS_URL: keys.url,
        HOSTING_URL: upstream.url,
        KEYS_TOKEN_SECRET: secret(),
        HOSTING_TOKEN_SECRET: secret(),
        DRYDOCK_RATE_LIMIT_SCALE: '1000000',
        ...(process.env['REDIS_URL'] === undefined ? {} : { REDIS_URL: process.env['REDIS_URL'] }),
        ...env,
      },
      // Every process of ours is started like this. Without a collector nothing of the SDK is loaded.
      { path: '/healthz', flags: ['--require', telemetryPreload] },
    );
  const startPeer = (role: string): Promise<Child> => start(peersScript, { ROLE: role, UPSTREAM: upstream.url });
  return { startGateway, startPeer, stop: () => Promise.all(started.map((child) => child.stop())) };
}

/** Puts load on them by turns, and returns the medians of each. */
async function compare(contestants: ReadonlyMap<string, Child>, rounds: number): Promise<Map<string, LoadResult>> {
  const results = new Map<string, LoadResult[]>();
  // V8 takes several seconds to compile the code that runs most, and longer in a process that does more.
  for (const [, child] of contestants) await loadOnce(child);
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, child] of contestants) {
      const result = await loadOnce(child);
      results.set(name, [...(results.get(name) ?? []), result]);
      say(`round ${round + 1}: ${name} ${shown(result)}`);
    }
  }
  return new Map([...results].map(([name, all]) => [name, middle(all)]));
}

/**
 * The gateway authenticates, limits and signs, while its peers only pass requests on. All use the same trivial
 * upstream, in turn, for three rounds.
 */
export async function benchGateway(): Promise<void> {
  const rounds = 3;
  const arena = await startArena();
  try {
    const contestants = new Map<string, Child>([['gateway', await arena.startGateway()]]);
    const peers = ['http-proxy-3', 'http-proxy-middleware'];
    for (const role of peers) contestants.set(role, await arena.startPeer(role));
    const results = await compare(contestants, rounds);
    const rows = peers.map((name) => rowOf(results, 'GET before a trivial upstream, 32 connections', 'gateway', name, 1));
    printRows(
      'Gateway',
      rows,
      `Median of ${rounds} rounds. ${process.env['REDIS_URL'] === undefined ? 'Quotas in memory.' : 'Quotas in Redis.'}`,
    );
  } finally {
    await arena.stop();
  }
}

/** The gateway with a collector, in three states of that collector, compared with the gateway without one. */
export async function benchTelemetry(): Promise<void> {
  const rounds = 5;
  const arena = await startArena();
  const collector = createServer((request, response) => request.resume().once('end', () => response.end('{}')));
  const silent = createServer((request) => void request.resume());
  const without = 'without a collector';
  try {
    const endpoints = {
      'with a collector': (await listen(collector)).url,
      'with one that never answers': (await listen(silent)).url,
      'with one that is not there': 'http://127.0.0.1:9',
    };
    const contestants = new Map<string, Child>([[without, await arena.startGateway()]]);
    for (const [name, url] of Object.entries(endpoints)) {
      contestants.set(name, await arena.startGateway({ OTEL_EXPORTER_OTLP_ENDPOINT: url, LOG_LEVEL: 'fatal' }));
    }
    const results = await compare(contestants, rounds);
    printRows(
      'Telemetry',
      Object.keys(endpoints).map((name) => rowOf(results, 'GET through the gateway, 32 connections', name, without, 0.97)),
      `Ours is the gateway ${'`OTEL_EXPORTER_OTLP_ENDPOINT`'} names a collector for. Median of ${rounds} rounds.`,
    );
  } finally {
    await arena.stop();
    for (const server of [collector, silent]) {
      server.closeAllConnections();
      server.close();
    }
  }
}

const listen = (server: Server): Promise<{ url: string }> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve({ url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}` });
    });
  });

function rowOf(results: ReadonlyMap<string, LoadResult>, what: string, name: string, peerName: string, bar: number): Row {
  const [ours, peer] = [results.get(name), results.get(peerName)];
  if (ours === undefined || peer === undefined) throw new Error(`${name} and ${peerName} were not both measured`);
  const ratio = ours.requestsPerSecond / peer.requestsPerSecond;
  return { what: `${what}: ${name}`, ours: shown(ours), peer: peerName, peerValue: shown(peer), ratio, bar };
}

const loadOnce = (child: Child): Promise<LoadResult> =>
  runLoad({ url: `${child.url}/v1/sites`, headers: { authorization: `Bearer ${token()}` } }, child.cpuTime);

/** Medians of both figures. CPU time hardly depends on what else the machine does, but requests per second do. */
function middle(results: readonly LoadResult[]): LoadResult {
  const known = results.flatMap(({ cpuMicroseconds }) => (cpuMicroseconds === undefined ? [] : [cpuMicroseconds]));
  return {
    requestsPerSecond: median(results.map(({ requestsPerSecond }) => requestsPerSecond)),
    cpuMicroseconds: known.length === 0 ? undefined : median(known),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
  };
}

const shown = ({ requestsPerSecond, cpuMicroseconds }: LoadResult): string =>
  `${requestsPerSecond.toFixed(0)} req/s${cpuMicroseconds === undefined ? '' : `, ${cpuMicroseconds.toFixed(0)} µs CPU each`}`;
