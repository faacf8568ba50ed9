import net from 'node:net';
import { until } from '@drydock/testing/wait';
import { type Bench, startBench } from '../test/fixture';
import { rawRequest } from '../test/raw';

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.close());

/**
 * Sends `start` and then a byte every tenth of a second. Resolves with the milliseconds until the gateway closes the
 * connection.
 */
function drip(start: string): Promise<number> {
  const startedMs = Date.now();
  return new Promise((resolve) => {
    const socket = net.connect(bench.port, '127.0.0.1');
    const timer = setInterval(() => socket.write('a'), 100);
    socket.once('close', () => {
      clearInterval(timer);
      resolve(Date.now() - startedMs);
    });
    socket.on('error', () => undefined).resume();
    socket.write(start);
  });
}

describe('connections that send a byte at a time (G11)', () => {
  it('are closed, and others are served meanwhile', async () => {
    const { server } = bench.gateway;
    expect([server.headersTimeout, server.requestTimeout]).toEqual([5_000, 10_000]);
    // The limits are shorter than in production, because the test waits for them.
    [server.headersTimeout, server.requestTimeout] = [500, 1_000];
    const { token } = bench.register();
    const authorization = `Authorization: Bearer ${token}`;
    const headers = Array.from({ length: 20 }, () => drip('GET /v1/sites HTTP/1.1\r\nHost: x\r\nX-A: '));
    const bodies = Array.from({ length: 20 }, () =>
      drip(rawRequest('POST /v1/sites', [authorization, 'Content-Type: application/json', 'Content-Length: 500'], '{')),
    );
    const meanwhile = await fetch(`${bench.url}/v1/sites`, { headers: { authorization: `Bearer ${token}` } });
    expect(meanwhile.status).toBe(200);
    // Node checks for slow clients every 30 s by default, and the gateway sets one second.
    expect(Math.max(...(await Promise.all([...headers, ...bodies])))).toBeLessThan(25_000);
    await until(() => bench.gateway.inFlight === 0);
  });
});
