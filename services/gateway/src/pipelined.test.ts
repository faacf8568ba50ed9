import net from 'node:net';
import { until } from '@drydock/testing/wait';
import { type Bench, startBench } from '../test/fixture';
import { rawRequest } from '../test/raw';

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

async function connect(): Promise<net.Socket> {
  const socket = net.connect(bench.port, '127.0.0.1').on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}

describe('requests that wait behind an unanswered one of their connection', () => {
  it('hold no place, and a client that leaves with them costs nobody one', async () => {
    const { token } = bench.register();
    let unanswered = 0;
    bench.hosting.answer = () => {
      unanswered += 1;
    };
    const socket = await connect();
    socket.write(
      rawRequest('GET /v1/sites', [`Authorization: Bearer ${token}`]) + rawRequest('GET /v1/nothing').repeat(20),
    );
    await until(() => unanswered === 1);
    expect(bench.gateway.inFlight).toBe(1);
    socket.destroy();
    await until(() => bench.gateway.inFlight === 0);
  });

  it('are limited: without a key, one connection keeps nobody else out', async () => {
    const { token } = bench.register();
    const socket = await connect();
    socket.pause();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(rawRequest('GET /openapi.json').repeat(30) + rawRequest('GET /v1/nothing').repeat(300));
    const response = await fetch(`${bench.url}/v1/sites`, { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(200);
    socket.resume();
    await closed;
    await until(() => bench.gateway.inFlight === 0);
  });
});
