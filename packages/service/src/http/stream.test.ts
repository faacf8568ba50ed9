import type { AddressInfo } from 'node:net';
import { until } from '@drydock/testing/wait';
import { request as send } from 'undici';
import { uuidv7 } from 'uuidv7';
import { caller, type Fixture, startFixture, tokenSecret } from '../../test/fixture';
import { type Caller, signRequestToken, tokenKey } from '../access/internal-token';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture({ streams: { openMax: 2 } });
});
afterAll(() => fixture.close());

const path = `/v1/things/${uuidv7()}/events`;
const open = (headers: Record<string, string> = {}, { service } = fixture, by: Caller = caller) => {
  const { port } = service.server.address() as AddressInfo;
  const token = signRequestToken(tokenKey(tokenSecret), 'hosting', by, { requestId: uuidv7(), method: 'GET', path });
  return send(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}`, ...headers } });
};

test('a stream sends events with their ids, resumes after Last-Event-ID, and ends after the last event', async () => {
  fixture.levers.events = async function* (lastEventId) {
    for (let id = Number(lastEventId ?? 0) + 1; id <= 3; id += 1) yield { id: String(id), data: { step: id } };
  };
  const whole = await open();
  expect(whole.headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  expect(await whole.body.text()).toBe(
    'id: 1\ndata: {"step":1}\n\nid: 2\ndata: {"step":2}\n\nid: 3\ndata: {"step":3}\n\n',
  );
  expect(await (await open({ 'last-event-id': '2' })).body.text()).toBe('id: 3\ndata: {"step":3}\n\n');
});

const silent = (told: (isAborted: boolean) => void): Fixture['levers']['events'] =>
  async function* (_lastEventId, signal) {
    await new Promise<void>((done) => signal.addEventListener('abort', () => done(), { once: true }));
    told(signal.aborted);
    yield { data: 'too late' };
  };

test('a silent stream sends heartbeats', async () => {
  const beating = await startFixture({ streams: { heartbeatMs: 20 } });
  beating.levers.events = silent(() => undefined);
  const { body } = await open({}, beating);
  let beats = '';
  for await (const chunk of body) {
    beats += String(chunk);
    if (beats.length >= 9) break;
  }
  expect(beats).toMatch(/^(:\n\n){3,}$/);
  await beating.close();
});

test('a silent stream ends after its lifetime, and its source is aborted', async () => {
  const short = await startFixture({ streams: { lifetimeMs: 100 } });
  const told = new Promise<boolean>((resolve) => {
    short.levers.events = silent(resolve);
  });
  expect(await (await open({}, short)).body.text()).toBe('');
  expect(await told).toBe(true);
  await short.close();
});

test('a service that closes ends its streams', async () => {
  const other = await startFixture();
  let ended = false;
  other.levers.events = async function* (_lastEventId, signal) {
    yield { data: 'first' };
    await new Promise<void>((done) => signal.addEventListener('abort', () => done(), { once: true }));
    ended = true;
  };
  const { body } = await open({}, other);
  const closed = other.close();
  expect(await body.text()).toBe('data: "first"\n\n');
  await closed;
  expect(ended).toBe(true);
});

test('beyond the maximum a stream is 503 with Retry-After, and a client that leaves frees its place', async () => {
  fixture.levers.events = async function* () {
    await new Promise(() => undefined);
    yield { data: 'never' };
  };
  const newCaller = (): Caller => ({ ...caller, keyId: uuidv7(), orgId: uuidv7() });
  const [first, second] = [await open(), await open({}, fixture, newCaller())];
  const third = await open({}, fixture, newCaller());
  expect([third.statusCode, third.headers['retry-after'], await third.body.json()]).toEqual([
    503,
    '5',
    expect.objectContaining({ code: 'overloaded' }),
  ]);
  first.body.on('error', () => undefined).destroy();
  const next = await until(async () => {
    const answer = await open();
    if (answer.statusCode === 200) return answer;
    await answer.body.dump();
    return false;
  });
  for (const answer of [second, next]) answer.body.on('error', () => undefined).destroy();
});

test('a key gets its share of the streams and then 429, and another key still gets a stream', async () => {
  const other = await startFixture({ streams: { openMax: 50 } });
  other.levers.events = async function* (_lastEventId, signal) {
    yield { data: 'first' };
    await new Promise<void>((done) => signal.addEventListener('abort', () => done(), { once: true }));
  };
  const answers = [];
  for (let count = 0; count < 50; count += 1) answers.push(await open({}, other));
  const refused = answers.filter(({ statusCode }) => statusCode !== 200);
  expect([answers.length - refused.length, new Set(refused.map(({ statusCode }) => statusCode))]).toEqual([
    9,
    new Set([429]),
  ]);
  expect(await refused[0]?.body.json()).toMatchObject({ code: 'too_many_streams' });
  expect((await open({}, other, { ...caller, keyId: uuidv7(), orgId: uuidv7() })).statusCode).toBe(200);
  for (const { body } of answers) body.on('error', () => undefined).resume();
  await other.close();
});
