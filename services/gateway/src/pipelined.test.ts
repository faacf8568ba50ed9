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

describe('requests behind an unanswered request of the same connection', () => {
  it('take no place, and a client that leaves also frees the place of its first request', async () => {
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

  it('are limited, so that one connection without a key blocks nobody else', async () => {
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
