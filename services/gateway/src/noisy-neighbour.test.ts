import http from 'node:http';
import net from 'node:net';
import { problemSchema } from '@drydock/contracts/platform/problems';
import { createShares } from '@drydock/service/access';
import { streamLimits, streamShares } from '@drydock/service/http';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { type Bench, randomToken, startBench, type TestKey } from '../test/fixture';
import { rawRequest } from '../test/raw';
import { gatewayLimits } from './compose';

let bench: Bench;
const sockets = new Set<net.Socket>();
/** The answers that a service holds back. The gateway would wait for them when it is closed. */
let heldBack: http.ServerResponse[] = [];
beforeEach(async () => {
  bench = await startBench();
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  for (const response of heldBack) response.destroy();
  heldBack = [];
  await bench.close();
});

const authorization = ({ token }: TestKey): string => `Authorization: Bearer ${token}`;
const get = (key: TestKey, path = '/v1/sites') =>
  fetch(bench.url + path, { headers: { authorization: `Bearer ${key.token}` } });
const statusOf = async (key: TestKey, path?: string) => (await get(key, path)).status;
const codeOf = async (response: Response) => problemSchema.parse(await response.json()).code;
/** Resolves after `count` more requests have reached the gateway, whatever the gateway answers. */
function requestsArrived(count: number): Promise<unknown> {
  let arrived = 0;
  bench.gateway.server.on('request', () => {
    arrived += 1;
  });
  return until(() => arrived >= count);
}

/** Opens a connection that sends `bytes` and then nothing. Its answer is ignored. */
function dangle(bytes: string, localAddress = '127.0.0.1'): net.Socket {
  const socket = net.connect({ port: bench.port, host: '127.0.0.1', localAddress });
  sockets.add(socket);
  socket.on('error', () => undefined).resume();
  socket.write(bytes);
  return socket;
}
const slowBody = (key: TestKey): net.Socket =>
  dangle(
    rawRequest('POST /v1/sites', [authorization(key), 'Content-Type: application/json', 'Content-Length: 500'], '{'),
  );

describe('a greedy caller', () => {
  it('with slow bodies takes no place from others', async () => {
    const [one, two, other] = [bench.register(), bench.register(), bench.register()];
    const arrived = requestsArrived(205);
    for (let count = 0; count < 205; count += 1) slowBody(count % 2 === 0 ? one : two);
    await arrived;
    const posted = await Promise.all(
      Array.from({ length: 20 }, () =>
        fetch(`${bench.url}/v1/sites`, {
          method: 'POST',
          body: '{}',
          headers: { authorization: `Bearer ${other.token}`, 'content-type': 'application/json' },
        }),
      ),
    );
    const read = await Promise.all(Array.from({ length: 20 }, () => get(other)));
    expect([...posted, ...read].map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200));
  });

  it('gets only its share of the bodies that are being received, with all its keys together', async () => {
    const first = bench.register();
    const closed: net.Socket[] = [];
    for (let count = 0; count < gatewayLimits.bodiesMax; count += 1) {
      const key = count % 10 === 0 ? bench.register({ orgId: first.orgId }) : first;
      const socket = slowBody(key);
      socket.once('close', () => closed.push(socket));
    }
    // At least half of the bodies are refused, and their connections are closed. The gateway waits for the others.
    await until(() => closed.length >= gatewayLimits.bodiesMax / 2);
    expect(await statusOf(bench.register())).toBe(200);
  });

  it('with calls that a service answers slowly takes no place from others', async () => {
    const [greedy, other] = [bench.register(), bench.register()];
    const held: http.ServerResponse[] = [];
    bench.hosting.answer = (_request, response, { claims }) => {
      if (claims.key_id === greedy.keyId) held.push(response);
      else response.end('{}');
    };
    const arrived = requestsArrived(250);
    const waiting = Array.from({ length: 250 }, () => statusOf(greedy));
    await arrived;
    await until(() => held.length > 10);
    expect(await Promise.all(Array.from({ length: 20 }, () => statusOf(other)))).toEqual(
      Array.from({ length: 20 }, () => 200),
    );
    expect(held.length).toBeLessThan(gatewayLimits.inFlightMax / 2);
    const answering = setInterval(() => {
      for (const response of held.splice(0)) response.end('{}');
    }, 10);
    const statuses = await Promise.all(waiting);
    clearInterval(answering);
    // Some calls may be refused, because they waited too long for their caller's share.
    expect(new Set(statuses)).toContain(200);
    await until(() => bench.gateway.inFlight === 0);
  });

  it('has few calls at the services while its calls wait, and calls of another organisation do not wait', async () => {
    await bench.close();
    const hour = 3_600_000;
    bench = await startBench({ limits: { newMs: hour, waitMs: hour } });
    const [greedy, other] = [bench.register(), bench.register()];
    const held: http.ServerResponse[] = [];
    let begun = 0;
    bench.hosting.answer = (_request, response, { claims }) => {
      if (claims.key_id === other.keyId) {
        response.end('{}');
        return;
      }
      begun += 1;
      held.push(response);
    };
    const answer = (): void => void held.shift()?.end('{}');
    expect(await statusOf(other)).toBe(200);
    const waiting = Array.from({ length: 40 }, () => statusOf(greedy));
    await until(() => begun === gatewayLimits.burstMax);
    const { burstMax, steadyMax } = gatewayLimits;
    for (let count = burstMax; count >= steadyMax; count -= 1) answer();
    await until(() => begun > burstMax);
    expect(held).toHaveLength(steadyMax);
    expect(await Promise.all(Array.from({ length: burstMax }, () => statusOf(other)))).toEqual(
      Array.from({ length: burstMax }, () => 200),
    );
    expect([begun, held.length]).toEqual([burstMax + 1, steadyMax]);
    for (let answered = begun - steadyMax; answered < 40; answered += 1) {
      answer();
      await until(() => begun === Math.min(40, answered + 1 + steadyMax));
    }
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 40 }, () => 200));
  });

  it('gets its whole burst answered, a share at a time', async () => {
    const key = bench.register();
    bench.hosting.answer = (_request, response) => setTimeout(() => response.end('{}'), 5);
    const statuses = await Promise.all(Array.from({ length: 180 }, () => statusOf(key)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(180);
  });

  it('frees its places if it leaves while its calls wait', async () => {
    const key = bench.register();
    const held: http.ServerResponse[] = [];
    bench.hosting.answer = (_request, response) => void held.push(response);
    for (let count = 0; count < 100; count += 1) dangle(rawRequest('GET /v1/sites', [authorization(key)]));
    await until(() => held.length > 10);
    for (const socket of sockets) socket.destroy();
    await until(() => bench.gateway.inFlight === 0);
    bench.hosting.answer = (_request, response) => response.end('{}');
    expect(await Promise.all(Array.from({ length: 50 }, () => statusOf(key)))).toEqual(
      Array.from({ length: 50 }, () => 200),
    );
  });

  /**
   * Sends `count` requests of a key, and hangs up on each as soon as the service has it. Resolves once each request is
   * with the service, in `heldBack`, or refused, and the gateway has seen its end.
   */
  async function hangUpOn(key: TestKey, count: number, request: (id: string) => string): Promise<void> {
    const callers = new Map<string, net.Socket>();
    let [refused, closed] = [0, 0];
    bench.gateway.server.on('request', (_request, response) => {
      response.once('close', () => {
        closed += 1;
      });
    });
    bench.hosting.answer = (_request, response, { headers, claims }) => {
      if (claims.key_id !== key.keyId) {
        response.end('{}');
        return;
      }
      heldBack.push(response);
      callers.get(String(headers['x-request-id']))?.destroy();
    };
    for (let number = 0; number < count; number += 1) {
      const id = `caller-${number}`;
      const socket = dangle(request(id));
      socket.once('data', () => {
        refused += 1;
      });
      callers.set(id, socket);
    }
    await until(() => heldBack.length + refused === count && closed === count);
  }

  it('who hangs up on writes has no more of them at a service than one who waits for the answers', async () => {
    await bench.close();
    bench = await startBench({ limits: { waitMs: 100 } });
    const key = bench.register();
    const head = (id: string) => [authorization(key), `X-Request-Id: ${id}`, 'Content-Type: application/json'];
    await hangUpOn(key, 300, (id) => rawRequest('POST /v1/sites', [...head(id), 'Content-Length: 2'], '{}'));
    expect(heldBack.length).toBeLessThanOrEqual(gatewayLimits.inFlightMax / 2);
    expect(bench.gateway.inFlight).toBe(heldBack.length);
    for (const response of heldBack) response.end('{}');
    await until(() => bench.gateway.inFlight === 0);
  });

  it('who hangs up on writes gets their places back when the service breaks the connections', async () => {
    const key = bench.register();
    const head = (id: string) => [authorization(key), `X-Request-Id: ${id}`, 'Content-Type: application/json'];
    await hangUpOn(key, 20, (id) => rawRequest('POST /v1/sites', [...head(id), 'Content-Length: 2'], '{}'));
    expect(bench.gateway.inFlight).toBe(20);
    for (const response of heldBack) response.destroy();
    await until(() => bench.gateway.inFlight === 0);
  });

  it('who hangs up on reads begins no more of them at a time than one who waits, while another one calls', async () => {
    await bench.close();
    bench = await startBench({ limits: { newMs: 3_600_000, waitMs: 100 } });
    const [greedy, other] = [bench.register(), bench.register()];
    expect(await statusOf(other)).toBe(200);
    await hangUpOn(greedy, 40, (id) => rawRequest('GET /v1/sites', [authorization(greedy), `X-Request-Id: ${id}`]));
    expect(heldBack.length).toBeLessThanOrEqual(gatewayLimits.burstMax);
    await until(() => bench.gateway.inFlight === 0);
    expect(await statusOf(other)).toBe(200);
  });

  it('gets 429 beyond its share of event streams, and others can open streams', async () => {
    const [greedy, other] = [bench.register(), bench.register()];
    const path = `/v1/sites/${uuidv7()}/workflows/${uuidv7()}/events`;
    bench.hosting.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
    };
    const opened: http.ClientRequest[] = [];
    const open = (key: TestKey): Promise<number> =>
      new Promise((resolve, reject) => {
        const asking = http.get(bench.url + path, { headers: { authorization: `Bearer ${key.token}` } }, (response) => {
          response.on('error', () => undefined);
          resolve(response.statusCode ?? 0);
        });
        asking.on('error', reject);
        opened.push(asking);
      });
    const statuses = await Promise.all(Array.from({ length: 200 }, () => open(greedy)));
    // The gateway admits as many streams of a key as the service, so the service never has to refuse a stream.
    const ofTheService = createShares(streamLimits.openMax, streamShares);
    let share = 0;
    while (ofTheService.take([greedy.keyId, greedy.orgId])) share += 1;
    expect(statuses.filter((status) => status === 200)).toHaveLength(share);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    const refused = await get(greedy, path);
    expect([refused.headers.get('retry-after'), await codeOf(refused)]).toEqual(['5', 'too_many_streams']);
    expect(await Promise.all(Array.from({ length: 20 }, () => open(other)))).toEqual(
      Array.from({ length: 20 }, () => 200),
    );
    for (const asking of opened) asking.on('error', () => undefined).destroy();
  });
});

describe('callers without a key', () => {
  it('take no place while their tokens are looked up', async () => {
    const key = bench.register();
    expect(await statusOf(key)).toBe(200);
    bench.keys.verificationMs = 500;
    for (let count = 0; count < 300; count += 1)
      dangle(rawRequest('GET /v1/sites', [`Authorization: Bearer ${randomToken()}`]));
    await until(() => bench.keys.lookUps.length > 10);
    expect(await Promise.all(Array.from({ length: 20 }, () => statusOf(key)))).toEqual(
      Array.from({ length: 20 }, () => 200),
    );
  });

  it('have at most half of the connections from one address', async () => {
    await bench.close();
    bench = await startBench({ limits: { connectionsMax: 20 } });
    const closed: net.Socket[] = [];
    for (let count = 0; count < 30; count += 1) {
      const socket = dangle('GET /healthz HTTP/1.1\r\n');
      socket.once('close', () => closed.push(socket));
    }
    await until(() => closed.length === 20);
    const elsewhere = dangle(rawRequest('GET /healthz'), '127.0.0.2');
    const answer = await new Promise((resolve) =>
      elsewhere.once('data', (part: Buffer) => resolve(part.toString('latin1'))),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 /);
  });

  it('who request documents and do not read them block nobody at another address', async () => {
    await bench.close();
    bench = await startBench({ limits: { pagesMax: 8 } });
    const unread = Array.from({ length: 8 }, () => dangle(rawRequest('GET /openapi.json').repeat(30)).pause());
    const statusFrom = (localAddress: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const asking = http.get(
          { port: bench.port, host: '127.0.0.1', path: '/docs', localAddress, agent: false },
          (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          },
        );
        asking.on('error', reject);
      });
    await until(async () => (await statusFrom('127.0.0.1')) === 503);
    expect(await statusFrom('127.0.0.2')).toBe(200);
    for (const socket of unread) socket.destroy();
    await until(async () => (await statusFrom('127.0.0.1')) === 200);
  });

  it('behind a trusted proxy, documents are shared between the addresses that the proxy names', async () => {
    await bench.close();
    bench = await startBench({ limits: { pagesMax: 8 }, config: { trustedProxies: ['127.0.0.1'] } });
    const unread = Array.from({ length: 8 }, () =>
      dangle(rawRequest('GET /openapi.json', ['X-Forwarded-For: 203.0.113.7']).repeat(30)).pause(),
    );
    const statusFor = async (client: string): Promise<number> => {
      const response = await fetch(`${bench.url}/docs`, { headers: { 'x-forwarded-for': client } });
      await response.body?.cancel();
      return response.status;
    };
    await until(async () => (await statusFor('203.0.113.7')) === 503);
    expect(await statusFor('198.51.100.1')).toBe(200);
    for (const socket of unread) socket.destroy();
  });
});
