import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { crcOf } from '@drydock/contracts/platform/api-token';
import { type Child, startChild } from './children';
import { type LoadResult, runLoad } from './load';
import { median } from './measure';
import { printRows, type Row, say } from './report';

const rounds = 3;
/** The supervisor and compose start the gateway with it; its peers get the same. */
const flags = ['--max-semi-space-size=64'];
const peersScript = path.join(__dirname, 'gateway-peers.js');
const gatewayScript = path.resolve(__dirname, '../../../services/gateway/dist/server.js');

function token(): string {
  const unsigned = `dd_live_${'A1b2C3d4E5f6'}_${'x'.repeat(43)}`;
  return unsigned + crcOf(unsigned);
}

/** The gateway authenticates, limits and signs; its peers only pass on. All before the same trivial upstream, in turn, three rounds. */
export async function benchGateway(): Promise<void> {
  const started: Child[] = [];
  const start = async (script: string, env: Record<string, string>, path = '/'): Promise<Child> => {
    const child = await startChild(script, env, { path, flags });
    started.push(child);
    return child;
  };
  try {
    const upstream = await start(peersScript, { ROLE: 'upstream' });
    const keys = await start(peersScript, { ROLE: 'keys' });
    const secret = (): string => randomBytes(32).toString('hex');
    const gateway = await start(
      gatewayScript,
      {
        SERVICE_NAME: 'gateway',
        KEYS_URL: keys.url,
        HOSTING_URL: upstream.url,
        KEYS_TOKEN_SECRET: secret(),
        HOSTING_TOKEN_SECRET: secret(),
        DRYDOCK_RATE_LIMIT_SCALE: '1000000',
        ...(process.env['REDIS_URL'] === undefined ? {} : { REDIS_URL: process.env['REDIS_URL'] }),
      },
      '/healthz',
    );
    const contestants = new Map<string, Child>([['gateway', gateway]]);
    for (const role of ['http-proxy-3', 'http-proxy-middleware'])
      contestants.set(role, await start(peersScript, { ROLE: role, UPSTREAM: upstream.url }));
    const results = new Map<string, LoadResult[]>();
    // V8 compiles what is hot for several seconds, and the more a process does the longer.
    for (const [, child] of contestants) await loadOnce(child);
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, child] of contestants) {
        const result = await loadOnce(child);
        results.set(name, [...(results.get(name) ?? []), result]);
        say(`round ${round + 1}: ${name} ${shown(result)}`);
      }
    }
    const ours = middle(results.get('gateway') ?? []);
    const rows = [...contestants.keys()]
      .filter((name) => name !== 'gateway')
      .map((name): Row => {
        const peer = middle(results.get(name) ?? []);
        const ratio = ours.requestsPerSecond / peer.requestsPerSecond;
        const what = 'GET before a trivial upstream, 32 connections';
        return { what, ours: shown(ours), peer: name, peerValue: shown(peer), ratio, bar: 1 };
      });
    printRows(
      'Gateway',
      rows,
      `Median of ${rounds} rounds. ${process.env['REDIS_URL'] === undefined ? 'Quotas in memory.' : 'Quotas in Redis.'}`,
    );
  } finally {
    await Promise.all(started.map((child) => child.stop()));
  }
}

const loadOnce = (child: Child): Promise<LoadResult> =>
  runLoad({ url: `${child.url}/v1/sites`, headers: { authorization: `Bearer ${token()}` } }, child.cpuTime);

/** Medians of both figures. CPU time hardly depends on what else the machine does; requests per second do. */
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
