/**
 * Ten thousand clients call the API and pause after each answer. Each client keeps one connection. Nineteen of twenty
 * belong to one organisation. `npm run chaos:load` runs the suite alone. The times of calls under load are printed but
 * not checked, because they depend on the machine.
 *
 * @tier chaos
 * @processes
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '@drydock/process';
import { isChaos } from '@drydock/testing/scope';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { inRepo } from '../dev-config';
import type { LoadSetup, LoadTally } from './load.program';
import { percentile } from './noisy-neighbour';
import { isReady, Rolled } from './rolled';
import { Tenant } from './tenant';

jest.setTimeout(3_600_000);
const measuredMs = isChaos ? 60_000 : 15_000;
const clients = { greedy: 9_500, other: 500 };
const connections = clients.greedy + clients.other;
const pauseMs = 10_000;
/**
 * For how many seconds a stopping gateway drains. A client that was told to come back in 30 s is silent for up to 36 s.
 * If the gateway ended earlier, it would lose the client's next request.
 */
const gatewayDrainSeconds = 60;
const services = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
const site = '/v1/sites?limit=10';
/** The calls of a client. One in eight is a write. */
const calls: LoadSetup['calls'] = [
  { path: '/v1/me' },
  { path: site },
  { path: '/v1/api-keys', body: { name: 'under load', scopes: [] } },
  { path: '/v1/databases?limit=10' },
  { path: '/v1/agency/boards?limit=10' },
  { path: '/v1/compute/servers?limit=10' },
  { path: site },
  { path: '/v1/me' },
];

type Organisations = Partial<Record<keyof typeof clients, string>>;
type Tallies = Record<string, LoadTally>;

interface Load {
  measure(): void;
  /** Ends the load. Resolves with the answers that each organisation got. */
  end(): Promise<Tallies>;
}

/** Starts the clients of each organisation, with its token. Resolves when each client has had an answer or an error. */
async function startLoad(urls: string[], tokens: Organisations): Promise<Load> {
  const children = Object.entries(tokens).map(([name, token]) => {
    const child: ChildProcess = fork(inRepo('infra/dev/dist/e2e/load.program.js'), {
      stdio: 'inherit',
      serialization: 'advanced',
    });
    const setup: LoadSetup = { urls, token, clients: clients[name as keyof typeof clients], calls, pauseMs };
    child.send(setup);
    return { name, child };
  });
  await Promise.all(children.map(({ child }) => once(child, 'message')));
  const endOne = async (child: ChildProcess): Promise<LoadTally> => {
    const told = once(child, 'message');
    child.send('end');
    const [tally] = (await told) as [LoadTally];
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    return tally;
  };
  return {
    measure: () => {
      for (const { child } of children) child.send('measure');
    },
    end: async () =>
      Object.fromEntries(
        await Promise.all(children.map(async ({ name, child }) => [name, await endOne(child)] as const)),
      ),
  };
}

const p99 = (tally: LoadTally | undefined): number => percentile(tally?.admittedMs ?? [], 0.99);
const reasonsOf = (tallies: Tallies, what: 'shed' | 'wrong'): string[] =>
  Object.values(tallies).flatMap((tally) => Object.keys(tally[what]));

function report(title: string, tallies: Tallies): void {
  const lines = Object.entries(tallies).map(([name, { admittedMs, ...counts }]) => {
    const [half, most] = [percentile(admittedMs, 0.5), percentile(admittedMs, 0.99)].map(Math.round);
    return `  ${name}: ${admittedMs.length} admitted, p50 ${half} ms, p99 ${most} ms, ${JSON.stringify(counts)}`;
  });
  process.stderr.write(
    `${title} (${os.cpus().length} cores, load ${os.loadavg()[0]?.toFixed(1)})\n${lines.join('\n')}\n`,
  );
}

let stack: TestStack;
let tokens: Required<Organisations>;

beforeAll(async () => {
  const filesMax = Number(
    execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).replace('unlimited', 'Infinity'),
  );
  // Node itself raises the soft limit to the hard limit. The gateway also needs sockets for the services and Redis.
  if (filesMax < connections + 2_000)
    throw new Error(`A process may have ${filesMax} files open (ulimit -Hn); this takes ${connections + 2_000}`);
  stack = await startStack({ environment: { DRYDOCK_DEMO: 'sites' } });
  tokens = { greedy: stack.demo.live_key, other: stack.demo.other_org_key };
});
afterAll(() => stack?.stop());

/** Reads from the database of keys how many keys the clients have minted. */
async function mintedKeys(): Promise<number> {
  const client = new pg.Client({ connectionString: stack.variable('keys', 'DATABASE_URL') });
  await client.connect();
  try {
    const { rows } = await client.query<{ minted: string }>(
      "SELECT count(*) AS minted FROM api_keys WHERE name = 'under load'",
    );
    return Number(rows[0]?.minted);
  } finally {
    await client.end();
  }
}
const writtenIn = (tallies: Tallies): number => Object.values(tallies).reduce((sum, { written }) => sum + written, 0);

describe('ten thousand connections through one gateway', () => {
  let quiet: Tallies;
  let loaded: Tallies;
  let written: number;
  let calmMs: number;

  beforeAll(async () => {
    const loadFor = async (of: Organisations) => {
      const load = await startLoad([stack.demo.base_url], of);
      load.measure();
      await sleep(measuredMs);
      return load.end();
    };
    quiet = await loadFor({ other: tokens.other });
    report('one organisation alone', quiet);
    const before = await mintedKeys();
    loaded = await loadFor(tokens);
    const endedMs = performance.now();
    const other = new Tenant(stack, stack.demo.other_org_key);
    for (let calm = 0; calm < 10; ) {
      const { status, ms } = await other.call('GET', site);
      calm = status === 200 && ms <= 3 * p99(quiet['other']) ? calm + 1 : 0;
    }
    calmMs = performance.now() - endedMs;
    written = (await mintedKeys()) - before;
    report('both', loaded);
    process.stderr.write(
      `times that the p99 of the one with a twentieth of the load grows: ${(p99(loaded['other']) / p99(quiet['other'])).toFixed(1)}\n` +
        `calm ${Math.round(calmMs)} ms after the load\n`,
    );
  });

  test('none breaks and none is made anew: each request is answered, or refused with the time to come back', () => {
    expect(reasonsOf(loaded, 'wrong')).toEqual([]);
    expect(reasonsOf(loaded, 'shed').filter((reason) => reason !== '503 overloaded')).toEqual([]);
    expect(Object.values(loaded).map((tally) => tally.connections)).toEqual([clients.greedy, clients.other]);
  });

  test('the organisation with a twentieth of them is refused nothing', () => {
    expect(loaded['other']?.shed).toEqual({});
  });

  test('each write that was refused until there was room is carried out once', () => {
    expect(written).toBe(writtenIn(loaded));
  });

  test('ten seconds after them calls take as long as before', () => {
    expect(calmMs).toBeLessThan(10_000);
  });
});

describe('ten thousand connections while every process restarts in turn', () => {
  let apis: Rolled[];
  let gateways: Rolled[];

  beforeAll(async () => {
    const twoOf = async (name: string, change: Record<string, string>): Promise<Rolled[]> => {
      const environment = { ...stack.environment(name), ...change };
      const program = `services/${name}/dist/server.js`;
      const rolled = [await findFreePort(), await findFreePort()].map(
        (port) => new Rolled(program, port, () => environment),
      );
      await Promise.all(rolled.map((each) => each.start()));
      return rolled;
    };
    const urls: Record<string, string> = {};
    apis = [];
    for (const name of services) {
      // A process ends as soon as both gateways have closed their connections to it, long before these 300 s.
      const two = await twoOf(name, { DRAIN_SECONDS: '300' });
      urls[`${name.toUpperCase()}_URL`] = two.map(({ url }) => url).join(',');
      apis.push(...two);
    }
    gateways = await twoOf('gateway', { ...urls, DRAIN_SECONDS: String(gatewayDrainSeconds) });
  });
  afterAll(() => Promise.all([...(gateways ?? []), ...(apis ?? [])].map((each) => each.end('SIGKILL'))));

  /** Restarts a worker or an agent. There is only one of each, so its work waits for the restart. */
  async function restartInStack(name: string): Promise<void> {
    const { pid } = stack.processes()[name] ?? { pid: 0 };
    stack.kill(name, 'SIGTERM');
    const isBack = () => {
      const now = stack.processes()[name];
      return now !== undefined && now.pid !== pid && isReady(`http://127.0.0.1:${now.port}`);
    };
    await until(isBack, { timeoutMs: 300_000, everyMs: 200, what: `the restart of ${name}` });
  }

  test('no request fails', async () => {
    const load = await startLoad(
      gateways.map(({ url }) => url),
      tokens,
    );
    const ends: unknown[] = [];
    for (const each of [...apis, ...gateways]) {
      ends.push(await each.end('SIGTERM'));
      await each.start();
      await until(() => isReady(each.url), { timeoutMs: 120_000, what: 'the new process to be ready' });
    }
    for (const name of Object.keys(stack.processes()).filter((each) => /-(?:worker|host)$/.test(each)))
      await restartInStack(name);
    const tallies = await load.end();
    report('while all restart', tallies);
    expect(reasonsOf(tallies, 'wrong')).toEqual([]);
    expect(reasonsOf(tallies, 'shed').filter((reason) => reason !== '503 overloaded')).toEqual([]);
    expect(ends).toEqual([...apis.map(() => [0, 'drain closed']), ...gateways.map(() => [0, 'gateway closed'])]);
  });
});
