import type http from 'node:http';
import { closeServer, createHttpServer, listen } from '@drydock/service/http';
import { until } from '@drydock/testing/wait';
import { type Answering, type Bench, startBench, startService, type TestKey, type TestService } from '../test/fixture';

let other: TestService;
let bench: Bench;
let key: TestKey;
/** Functions that close a test's additional resources. They run after the test. */
let opened: Array<() => Promise<void>>;
beforeEach(async () => {
  other = await startService('hosting');
  bench = await startBench({ hostingUrls: [other.url] });
  key = bench.register();
  opened = [];
});
afterEach(async () => {
  await bench.close();
  await other.close();
  for (const close of opened) await close();
});

const call = (method: 'GET' | 'POST', headers: Record<string, string> = {}) =>
  fetch(`${bench.url}/v1/sites`, {
    method,
    headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json', ...headers },
    ...(method === 'POST' ? { body: '{}' } : {}),
  });
const arrived = () => bench.hosting.arrived + other.arrived;

it('calls are spread evenly over the processes of a service', async () => {
  for (let calls = 0; calls < 10; calls += 1) expect((await call('POST')).status).toBe(200);
  expect([bench.hosting.arrived, other.arrived]).toEqual([5, 5]);
});

it('a call that did not reach a process goes to another one, even if it is a POST', async () => {
  await other.close();
  for (let calls = 0; calls < 10; calls += 1) expect((await call('POST')).status).toBe(200);
  expect(bench.hosting.arrived).toBe(10);
});

describe('a process that dies during a request', () => {
  /** How many of the next requests lose their connection before they are answered. */
  let deaths = 0;
  const answer: Answering = (request, response) => {
    deaths -= 1;
    if (deaths >= 0) request.socket.destroy();
    else response.end('{}');
  };
  beforeEach(() => {
    bench.hosting.answer = answer;
    other.answer = answer;
  });

  it.each([
    ['GET', {}, 200, 2],
    ['POST', { 'idempotency-key': 'once' }, 200, 2],
    ['POST', {}, 503, 1],
  ] as const)('%s with %j is %i after %i attempts', async (method, headers, status, attempts) => {
    deaths = 1;
    expect((await call(method, headers)).status).toBe(status);
    expect(arrived()).toBe(attempts);
  });

  it('each process is tried once', async () => {
    deaths = 10;
    expect((await call('GET')).status).toBe(503);
    expect(arrived()).toBe(2);
  });

  it('is tried again by the next call if the others have failed too', async () => {
    deaths = 2;
    expect((await call('GET')).status).toBe(503);
    expect((await call('GET')).status).toBe(200);
  });
});

it('a process that announces its end gets no more requests, and all connections to it are closed', async () => {
  let ends = false;
  let asked = 0;
  const held: http.ServerResponse[] = [];
  const ending = createHttpServer((request, response) => {
    const isProbe = request.url === '/readyz';
    if (!isProbe) asked += 1;
    response.writeHead(isProbe && ends ? 503 : 200, ends ? { connection: 'close' } : {});
    if (isProbe || ends) response.end('{}');
    else held.push(response);
  });
  const { url } = await listen(ending, 0);
  const own = await startBench({ hostingUrls: [url] });
  opened.push(own.close, () => closeServer(ending));
  const { token } = own.register();
  const ask = async () =>
    (await fetch(`${own.url}/v1/sites`, { headers: { authorization: `Bearer ${token}` } })).status;
  // Three of the six calls go to `ending`. Their three connections are idle afterwards.
  const first = Promise.all(Array.from({ length: 6 }, ask));
  await until(() => held.length === 3);
  for (const response of held) response.end('{}');
  await first;
  ends = true;
  const statuses = [];
  for (let calls = 0; calls < 20; calls += 1) statuses.push(await ask());
  expect(statuses).toEqual(statuses.map(() => 200));
  expect(asked).toBeLessThanOrEqual(4);
  await until(
    async () =>
      (await new Promise<number>((resolve) => ending.getConnections((_error, count) => resolve(count)))) === 0,
  );
});

it('a service is ready if one of its processes is ready', async () => {
  await other.close();
  const ready = async () => (await fetch(`${bench.url}/readyz`)).json();
  expect(await ready()).toMatchObject({ checks: { hosting: 'ok' } });
  await bench.hosting.close();
  expect(await ready()).toMatchObject({ checks: { hosting: 'failed' } });
});
