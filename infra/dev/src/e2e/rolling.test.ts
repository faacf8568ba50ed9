/**
 * Restarts two processes of keys behind a gateway, and two gateways behind a load balancer, while requests run. A
 * restart begins after a fixed number of answers, so that the speed of the machine does not matter.
 *
 * @tier long
 * @processes
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { type TestPostgres, testPostgres } from '@drydock/postgres/testing/postgres';
import { findFreePort } from '@drydock/process';
import { newSecret } from '@drydock/testing/secret';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { inRepo } from '../dev-config';
import { isReady, Rolled } from './rolled';

jest.setTimeout(600_000);

const secrets = { service: newSecret(), token: newSecret(), webhook: newSecret() };
let postgres: TestPostgres;
let token: string;
let keys: Rolled[];
let gateways: Rolled[];
let balancer: Balancer;

beforeAll(async () => {
  postgres = await testPostgres({ serviceDir: inRepo('services/keys') });
  const database = { DATABASE_URL: postgres.url, SERVICE_SECRET: secrets.service };
  const env = { PATH: process.env['PATH'], ...database };
  const made = execFileSync(process.execPath, [inRepo('services/keys/dist/bootstrap.js'), '--json'], {
    env,
    encoding: 'utf8',
  });
  ({ token } = z.looseObject({ token: z.string() }).parse(JSON.parse(made)));
  const ofKeys = { ...database, INTERNAL_TOKEN_SECRET: secrets.token, WEBHOOK_SECRET: secrets.webhook };
  // A process of keys ends as soon as both gateways have closed their connections to it, long before these 300 s.
  const patient = { ...ofKeys, DRAIN_SECONDS: '300' };
  keys = [
    new Rolled('services/keys/dist/server.js', await findFreePort(), () => patient),
    new Rolled('services/keys/dist/server.js', await findFreePort(), () => patient),
  ];
  const ofGateway = {
    KEYS_URL: keys.map(({ url }) => url).join(','),
    KEYS_TOKEN_SECRET: secrets.token,
    DRYDOCK_RATE_LIMIT_SCALE: '1000',
    // A client that calls within these 5 s gets `Connection: close` with its answer. Only a client that is silent for
    // longer can lose a request.
    DRAIN_SECONDS: '5',
  };
  gateways = [
    new Rolled('services/gateway/dist/server.js', await findFreePort(), () => ofGateway),
    new Rolled('services/gateway/dist/server.js', await findFreePort(), () => ofGateway),
  ];
  await Promise.all([...keys, ...gateways].map((each) => each.start()));
  balancer = await startBalancer(gateways.map(({ url }) => url));
});
afterAll(async () => {
  balancer.close();
  await Promise.all([...gateways, ...keys].map((each) => each.end('SIGKILL')));
  await postgres.close();
});

const kinds = ['read', 'list', 'keyed write', 'write'] as const;
type Kind = (typeof kinds)[number];

interface Load {
  /** Resolves when each kind of request has had this many more answers. */
  more(requests: number): Promise<void>;
  /** Ends the load. Resolves with one line for each wrong answer, when each client has had its last answer. */
  end(): Promise<string[]>;
}

let numbers = 0;

async function ask(base: string, agent: http.Agent, kind: Kind): Promise<string> {
  numbers += 1;
  const isWrite = kind === 'write' || kind === 'keyed write';
  const path = kind === 'read' ? '/v1/me' : '/v1/api-keys';
  const headers = {
    authorization: `Bearer ${token}`,
    ...(isWrite ? { 'content-type': 'application/json' } : {}),
    ...(kind === 'keyed write' ? { 'idempotency-key': `roll-${numbers}` } : {}),
  };
  const request = http.request(base + path, { method: isWrite ? 'POST' : 'GET', agent, headers });
  request.end(isWrite ? JSON.stringify({ name: `roll ${numbers}`, scopes: [] }) : undefined);
  const [response]: http.IncomingMessage[] = await once(request, 'response');
  if (response === undefined) throw new Error('there is a response');
  let text = '';
  for await (const piece of response) text += String(piece);
  return response.statusCode === (isWrite ? 201 : 200) ? 'as it should' : `${response.statusCode} ${text}`;
}

/** Starts eight clients, two for each kind of request. A client keeps its connection until the gateway closes it. */
function startLoad(base: string): Load {
  const answered = new Map<Kind, number>(kinds.map((kind) => [kind, 0]));
  const wrong: string[] = [];
  let ends = false;
  const client = async (kind: Kind): Promise<void> => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (!ends) {
      const outcome = await ask(base, agent, kind).catch((error: unknown) => `no answer: ${String(error)}`);
      if (outcome !== 'as it should') wrong.push(`${kind}: ${outcome}`);
      answered.set(kind, (answered.get(kind) ?? 0) + 1);
    }
    agent.destroy();
  };
  const clients = [...kinds, ...kinds].map(client);
  return {
    more: async (requests) => {
      const before = new Map(answered);
      const isEnough = (kind: Kind) => (answered.get(kind) ?? 0) - (before.get(kind) ?? 0) >= requests;
      await until(() => kinds.every(isEnough), { timeoutMs: 200_000, what: `${requests} more requests of each kind` });
    },
    end: async () => {
      ends = true;
      await Promise.all(clients);
      return wrong;
    },
  };
}

interface Balancer {
  url: string;
  close(): void;
}

/**
 * Starts a load balancer of TCP connections. A new connection goes to a process that is ready. If that process refuses
 * the connection, the next ready process gets it.
 */
async function startBalancer(urls: readonly string[]): Promise<Balancer> {
  let turn = 0;
  const connectTo = async (url: string): Promise<net.Socket> => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  };
  const serve = async (client: net.Socket): Promise<void> => {
    turn += 1;
    const first = turn;
    let tries = 0;
    const connected = async (): Promise<net.Socket | undefined> => {
      tries += 1;
      const url = urls[(first + tries) % urls.length] ?? '';
      return (await isReady(url)) ? connectTo(url) : undefined;
    };
    const chosen = await until(connected, { what: 'a process that is ready' });
    chosen.on('error', () => client.destroy());
    client.once('close', () => chosen.destroy());
    chosen.pipe(client);
    client.pipe(chosen);
  };
  const server = net.createServer((client) => {
    client.on('error', () => client.destroy());
    serve(client).catch(() => client.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return { url: `http://127.0.0.1:${address.port}`, close: () => server.close() };
}

/** The number of answers to each kind of request before, between and after the restarts. */
const someRequests = 10;

async function roll(processes: readonly Rolled[], load: Load): Promise<unknown[]> {
  const ends = [];
  await load.more(someRequests);
  for (const each of processes) {
    ends.push(await each.end('SIGTERM'));
    await load.more(someRequests);
    await each.start();
    await until(() => isReady(each.url), { what: 'the new process to be ready' });
    await load.more(someRequests);
  }
  return ends;
}

test('two processes of a service restart in turn behind a gateway, and no request fails', async () => {
  const load = startLoad(gateways[0]?.url ?? '');
  const ends = await roll(keys, load);
  expect([await load.end(), ends]).toEqual([
    [],
    [
      [0, 'drain closed'],
      [0, 'drain closed'],
    ],
  ]);
});

test('two gateways restart in turn behind a listener, and no request fails', async () => {
  const load = startLoad(balancer.url);
  const ends = await roll(gateways, load);
  expect([await load.end(), ends]).toEqual([
    [],
    [
      [0, 'gateway closed'],
      [0, 'gateway closed'],
    ],
  ]);
});

test('a process that is killed fails at most the writes it had that are not safe to repeat', async () => {
  const load = startLoad(gateways[0]?.url ?? '');
  await load.more(someRequests);
  expect(await keys[0]?.end('SIGKILL')).toEqual(['SIGKILL']);
  await load.more(someRequests);
  await keys[0]?.start();
  await load.more(someRequests);
  const wrong = await load.end();
  expect(wrong.filter((line) => !/^write: 503 .*may or may not/.test(line))).toEqual([]);
  expect(wrong.length).toBeLessThanOrEqual(2);
});
