import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { crcOf } from '@drydock/contracts/platform/api-token';
import { type Child, startChild } from './children';
import { type Load, type LoadResult, runLoad } from './load';
import { median } from './measure';
import { type Row, say } from './report';

/** The flags with which every deployment starts the gateway. All processes of these benchmarks get the same flags. */
const flags = ['--max-semi-space-size=64', '--no-allocation-site-pretenuring'];
const peersScript = path.join(__dirname, 'gateway-peers.js');
const telemetryPreload = path.resolve(__dirname, '../../../packages/service/dist/telemetry/preload.js');
const gatewayScript = path.resolve(__dirname, '../../../services/gateway/dist/server.js');

function token(): string {
  const unsigned = `dd_live_${'A1b2C3d4E5f6'}_${'x'.repeat(43)}`;
  return unsigned + crcOf(unsigned);
}

/** A collector of telemetry that answers at once, after 2 s, or never. */
type CollectorRole = 'collector' | 'slow-collector' | 'hanging-collector';

/**
 * Returns functions that start the processes to compare. All gateways and proxies share one trivial upstream, and all
 * gateways share one stub of the keys service. `stop` ends all processes.
 */
export async function startArena() {
  const started: Child[] = [];
  const start = async (
    script: string,
    env: Record<string, string>,
    options: Parameters<typeof startChild>[2] = {},
  ): Promise<Child> => {
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
      // Every process of Drydock is started with the telemetry preload. Without the address of a collector the preload
      // does not load OpenTelemetry's SDK.
      { path: '/healthz', flags: ['--require', telemetryPreload] },
    );
  const startPeer = (role: string): Promise<Child> => start(peersScript, { ROLE: role, UPSTREAM: upstream.url });
  const startCollector = (role: CollectorRole): Promise<Child> =>
    start(peersScript, { ROLE: role }, { path: '/healthz' });
  return { startGateway, startPeer, startCollector, stop: () => Promise.all(started.map((child) => child.stop())) };
}

/**
 * Puts load on each contestant once in each round. The order rotates, so that no contestant is always first. Resolves
 * with the results of each contestant, in the order of the rounds.
 */
export async function compare(
  contestants: ReadonlyMap<string, Child>,
  rounds: number,
): Promise<Map<string, LoadResult[]>> {
  const results = new Map<string, LoadResult[]>([...contestants.keys()].map((name) => [name, []]));
  // The first load is not counted, because V8 compiles hot code for several seconds.
  for (const child of contestants.values()) await loadOnce(child);
  for (let round = 0; round < rounds; round += 1) {
    const order = [...contestants];
    const turned = [...order.slice(round % order.length), ...order.slice(0, round % order.length)];
    for (const [name, child] of turned) {
      const result = await loadOnce(child);
      results.get(name)?.push(result);
      say(`round ${round + 1}: ${name} ${shown(result)}`);
    }
  }
  return results;
}

/** Compares two contestants. The ratio of the row is the median of the ratios of the rounds. */
export function rowOf(
  results: ReadonlyMap<string, readonly LoadResult[]>,
  what: string,
  name: string,
  peerName: string,
  bar?: number,
): Row {
  const [ours, peers] = [results.get(name), results.get(peerName)];
  if (ours === undefined || peers === undefined) throw new Error(`${name} and ${peerName} were not both measured`);
  return {
    what: `${what}: ${name}`,
    ours: shown(middle(ours)),
    peer: peerName,
    peerValue: shown(middle(peers)),
    ratio: ratioOf(ours, peers),
    ...(bar === undefined ? {} : { bar }),
  };
}

/**
 * Returns the median of the ratios of the rounds. A ratio of two medians could compare different rounds, between which
 * the speed of the machine changes.
 */
export const ratioOf = (ours: readonly LoadResult[], peers: readonly LoadResult[]): number =>
  median(
    ours.map(({ requestsPerSecond }, round) => requestsPerSecond / (peers[round]?.requestsPerSecond ?? Number.NaN)),
  );

export const loadOnce = (child: Child, durations: Pick<Load, 'seconds' | 'warmUpSeconds'> = {}): Promise<LoadResult> =>
  runLoad(
    { url: `${child.url}/v1/sites`, headers: { authorization: `Bearer ${token()}` }, ...durations },
    child.cpuTime,
  );

/** Returns the median of each figure. */
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
