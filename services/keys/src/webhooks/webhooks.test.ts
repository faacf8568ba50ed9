/**
 * @processes
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Event } from '@drydock/contracts/keys/events';
import type { WebhookDelivery, WebhookWithSecret } from '@drydock/contracts/keys/webhooks';
import { createLog } from '@drydock/service/telemetry';
import { refusalOf } from '@drydock/service/testing/problem';
import { until } from '@drydock/testing/wait';
import { Webhook } from 'standardwebhooks';
import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, keys, startKeys } from '../../test/keys-api';
import { openDatabase } from '../context/database.store';
import { storeEvents } from '../events/event.store';
import { sequenceEvents } from '../events/sequencer';
import { createWebhookSecrets } from '../secrets/webhook.secret';
import { purgeEvents, settleDeliveries } from './delivery.store';
import { createWebhookSender, pausesSeconds, type SenderOptions } from './sender';

interface Received {
  path: string;
  id: string;
  headers: Record<string, string>;
  body: string;
  event: Event;
}

/** Starts a receiver as a customer runs it. `answer` returns the status to answer, or the name of a misbehaviour. */
async function startReceiver() {
  const received: Received[] = [];
  const receiver = {
    received,
    port: 0,
    answer: (_message: Received): number | 'hang' | 'drip' | 'other protocol' | Promise<number> => 204,
    url: (path: string) => `http://127.0.0.1:${receiver.port}${path}`,
    at: (path: string) => received.filter((message) => message.path === path),
    hangUp: () => server.closeAllConnections(),
    /** Closes the port until `comeBack`. */
    goAway: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
    comeBack: () => new Promise<void>((resolve) => server.listen(receiver.port, '127.0.0.1', resolve)),
    close: () => server.close(),
  };
  const take = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const message = {
      path: request.url ?? '',
      id: headers['webhook-id'] ?? '',
      headers,
      body,
      event: JSON.parse(body).data,
    };
    received.push(message);
    const status = await receiver.answer(message);
    // With 'drip' the headers are sent one by one and never end.
    if (status === 'drip') return dripInto(response);
    if (status === 'other protocol')
      return void response.socket?.end('HTTP/1.1 101 Other\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n');
    if (status !== 'hang') response.writeHead(status, { location: receiver.url('/elsewhere') }).end('thanks');
  };
  const server = http.createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  receiver.port = (server.address() as AddressInfo).port;
  return receiver;
}

function dripInto({ socket }: http.ServerResponse): void {
  socket?.write('HTTP/1.1 204 No Content\r\n');
  const drip = setInterval(() => socket?.write('x-drop: 1\r\n'), 20);
  socket?.once('close', () => clearInterval(drip));
}

let receiver: Awaited<ReturnType<typeof startReceiver>>;
let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  receiver = await startReceiver();
  api = await startKeys({ DRYDOCK_WEBHOOK_ALLOW: `127.0.0.1:${receiver.port}` });
});
beforeEach(async () => {
  receiver.answer = () => 204;
  root = await api.bootstrap();
});
afterAll(async () => {
  receiver.close();
  await api.close();
});

const senders: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of senders.splice(0)) await stop();
});

/** Starts a worker's sender on the API's database, with pauses short enough for a test. */
function startSender(more: Partial<SenderOptions> = {}) {
  const database = openDatabase(api.postgres.url, { max: 6, applicationName: 'sender' });
  const sender = createWebhookSender({
    database,
    log: createLog({ service: 'test', level: 'silent' }),
    secrets: createWebhookSecrets(api.secrets.webhook),
    allowed: new Set([`127.0.0.1:${receiver.port}`]),
    everyMs: 20,
    leaseSeconds: 30,
    pauses: [0.05, 0.05, 0.05],
    ...more,
  });
  sender.start();
  senders.push(async () => {
    await sender.stop();
    await database.close();
  });
}

const create = async (body: object = {}, key: GoodKey = root): Promise<WebhookWithSecret> => {
  const answer = await api.call(key.caller, 'POST', '/v1/webhooks', {
    body: { url: receiver.url(`/${uuidv7()}`), ...body },
  });
  expect(answer.status).toBe(201);
  return answer.json as WebhookWithSecret;
};
const pathOf = ({ url }: { url: string }) => new URL(url).pathname;
const turn = (resource: string, type = 'workflow.succeeded', orgId = root.caller.orgId) => ({
  ...{ id: uuidv7(), type, at: new Date().toISOString(), org_id: orgId, resource, actor_key_id: null, mode: 'live' },
  workflow: { id: uuidv7(), kind: 'restore_backup', status: 'succeeded', error: null },
});
const happen = async (events: readonly object[]): Promise<void> => {
  const answer = await api.internal(
    '/internal/events',
    { service: 'hosting', entries: events },
    { issuer: 'hosting', secret: api.secrets.audit },
  );
  expect(answer.status).toBe(204);
};
const deliveriesOf = async ({ id }: { id: string }): Promise<WebhookDelivery[]> => {
  const answer = await api.call(root.caller, 'GET', `/v1/webhooks/${id}/deliveries?limit=100`);
  expect(answer.status).toBe(200);
  return (answer.json as { data: WebhookDelivery[] }).data;
};
const get = async ({ id }: { id: string }) => (await api.call(root.caller, 'GET', `/v1/webhooks/${id}`)).json;

test('an event is sent once, with the body that its endpoint answers and a signature of the standard', async () => {
  startSender();
  const webhook = await create({ event_types: ['workflow.succeeded'] });
  const event = turn('/v1/sites/a');
  await happen([event, turn('/v1/sites/a', 'workflow.failed')]);
  await until(() => receiver.at(pathOf(webhook)).length > 0);
  await wait(300);
  const [message, ...more] = receiver.at(pathOf(webhook));
  expect(more).toEqual([]);
  const { mode: _mode, ...told } = event;
  expect(new Webhook(webhook.secret).verify(message?.body ?? '', message?.headers ?? {})).toEqual({
    type: event.type,
    timestamp: event.at,
    data: told,
  });
  expect(message?.id).toBe(event.id);
  expect((await api.call(root.caller, 'GET', `/v1/events/${event.id}`)).json).toEqual(told);
  expect(() => new Webhook(webhook.secret).verify(`${message?.body} `, message?.headers ?? {})).toThrow(
    'No matching signature',
  );
  const [delivery] = await deliveriesOf(webhook);
  expect(delivery).toMatchObject({
    event_id: event.id,
    status: 'delivered',
    attempts: 1,
    last_status: 204,
    last_error: null,
    next_attempt_at: null,
  });
});

test('whatever a receiver does, each event arrives, and events of one resource in their order', async () => {
  startSender({ pauses: Array.from({ length: 30 }, () => 0.02) });
  const webhook = await create();
  const resources = Array.from({ length: 5 }, () => `/v1/sites/${uuidv7()}`);
  const events = Array.from({ length: 60 }, (_, index) =>
    turn(resources[index % resources.length] ?? '', 'workflow.accepted'),
  );
  let messages = 0;
  const taken: Event[] = [];
  receiver.answer = ({ event }) => {
    const status = [500, 204, 302, 204, 429, 404][messages++ % 6] ?? 204;
    if (status === 204) taken.push(event);
    return status;
  };
  for (let from = 0; from < events.length; from += 7) await happen(events.slice(from, from + 7));
  const pending = async () => (await deliveriesOf(webhook)).filter(({ status }) => status !== 'delivered');
  await until(
    async () =>
      (await pending()).length === 0 &&
      events.every(({ id }) => receiver.received.some((message) => message.id === id)),
    { timeoutMs: 120_000 },
  );
  for (const resource of resources) {
    const inOrder = taken.filter((event) => event.resource === resource).map(({ id }) => id);
    expect([...new Set(inOrder)]).toEqual(events.filter((event) => event.resource === resource).map(({ id }) => id));
  }
  expect(receiver.at('/elsewhere')).toEqual([]);
}, 150_000);

test('a delivery that is never accepted fails, lets the resource’s next event go, and can be replayed', async () => {
  startSender();
  const webhook = await create({ event_types: ['workflow.*'] });
  const [lost, next] = [turn('/v1/sites/b'), turn('/v1/sites/b')];
  receiver.answer = ({ id }) => (id === lost.id ? 500 : 204);
  await happen([lost, next]);
  await until(async () => (await deliveriesOf(webhook)).filter(({ status }) => status !== 'pending').length === 2);
  const [second, first] = await deliveriesOf(webhook);
  expect(first).toMatchObject({
    event_id: lost.id,
    status: 'failed',
    attempts: 4,
    last_status: 500,
    last_error: 'It answered 500.',
  });
  expect(second).toMatchObject({ event_id: next.id, status: 'delivered', attempts: 1 });
  expect(await get(webhook)).toMatchObject({ enabled: true, failing_since: null });
  receiver.answer = () => 204;
  const replay = `/v1/webhooks/${webhook.id}/deliveries/${first?.id}/replay`;
  expect((await api.call(root.caller, 'POST', replay)).status).toBe(200);
  await until(async () => (await deliveriesOf(webhook)).every(({ status }) => status === 'delivered'));
  expect(
    refusalOf(await api.call(root.caller, 'POST', `/v1/webhooks/${webhook.id}/deliveries/${uuidv7()}/replay`)),
  ).toBe('404 webhook_delivery_not_found');
});

test('a receiver that hangs, never ends its answer or switches protocols is given up and tried again', async () => {
  startSender({ answerMs: 400 });
  const webhook = await create({ event_types: ['workflow.*'] });
  const behaviour = ['other protocol', 'hang', 'drip', 204] as const;
  receiver.answer = () => behaviour[receiver.at(pathOf(webhook)).length - 1] ?? 204;
  const event = turn('/v1/sites/k');
  await happen([event]);
  await until(async () => (await deliveriesOf(webhook))[0]?.status === 'delivered');
  expect(receiver.at(pathOf(webhook)).map(({ id }) => id)).toEqual(behaviour.map(() => event.id));
});

test('an absent receiver is tried for three days with growing pauses; once back, it gets all in order', async () => {
  startSender({ pauses: pausesSeconds });
  const webhook = await create({ event_types: ['workflow.*'] });
  const events = [turn('/v1/sites/l'), turn('/v1/sites/l'), turn('/v1/sites/l')];
  await receiver.goAway();
  await happen(events);
  const first = async () => (await deliveriesOf(webhook)).at(-1);
  const seconds: number[] = [];
  for (let attempts = 1; attempts <= 10; attempts += 1) {
    await until(async () => {
      const delivery = await first();
      return delivery?.attempts === attempts && delivery.last_error === 'Nobody listens there.';
    });
    const { id, next_attempt_at, last_attempt_at } = (await first()) ?? {};
    seconds.push((Date.parse(next_attempt_at ?? '') - Date.parse(last_attempt_at ?? '')) / 1_000);
    if (attempts === 10) await receiver.comeBack();
    // Ends the pause. The last error is cleared, so that the next attempt can be recognised.
    await api.rows('UPDATE webhook_deliveries SET due_at = now(), last_error = NULL WHERE id = $1', [id]);
  }
  const days = seconds.reduce((sum, each) => sum + each) / 86_400;
  expect([days > 2.6, days < 3.4]).toEqual([true, true]);
  const growing = seconds.slice(0, -1); // the last two pauses are equally long
  expect(growing).toEqual([...growing].sort((a, b) => a - b));
  await until(async () => (await deliveriesOf(webhook)).every(({ status }) => status === 'delivered'));
  expect(receiver.at(pathOf(webhook)).map(({ id }) => id)).toEqual(events.map(({ id }) => id));
});

test('a webhook that is off gets nothing and keeps no new event; on again, pending events come in order', async () => {
  const webhook = await create({ event_types: ['workflow.*'] });
  const waiting = [turn('/v1/sites/c'), turn('/v1/sites/c'), turn('/v1/sites/d')];
  await happen(waiting);
  await until(async () => (await deliveriesOf(webhook)).length === 3);
  const turnTo = (enabled: boolean) =>
    api.call(root.caller, 'PATCH', `/v1/webhooks/${webhook.id}`, { body: { enabled } });
  expect((await turnTo(false)).json).toMatchObject({ enabled: false, disabled_reason: 'customer' });
  startSender();
  const unseen = turn('/v1/sites/c');
  await happen([unseen]);
  await until(async () => (await api.call(root.caller, 'GET', `/v1/events/${unseen.id}`)).status === 200);
  expect(receiver.at(pathOf(webhook))).toEqual([]);
  for (const path of ['test', `deliveries/${uuidv7()}/replay`])
    expect(refusalOf(await api.call(root.caller, 'POST', `/v1/webhooks/${webhook.id}/${path}`))).toBe(
      '422 webhook_disabled',
    );
  expect((await turnTo(true)).json).toMatchObject({ enabled: true, disabled_reason: null });
  await until(() => receiver.at(pathOf(webhook)).length === 3);
  await wait(200);
  const arrived = receiver.at(pathOf(webhook)).filter(({ event }) => event.resource === '/v1/sites/c');
  expect(arrived.map(({ id }) => id)).toEqual(waiting.slice(0, 2).map(({ id }) => id));
  expect(receiver.at(pathOf(webhook))).toHaveLength(3);
});

test('a webhook that is switched off during deliveries gets nothing more, however those end', async () => {
  startSender();
  const webhook = await create({ event_types: ['workflow.*'] });
  const answers: ((status: number) => void)[] = [];
  receiver.answer = () => new Promise((resolve) => answers.push(resolve));
  const [failing, taken, behind] = [turn('/v1/sites/m'), turn('/v1/sites/n'), turn('/v1/sites/n')];
  await happen([failing, taken, behind]);
  await until(() => answers.length === 2);
  const turnTo = (enabled: boolean) =>
    api.call(root.caller, 'PATCH', `/v1/webhooks/${webhook.id}`, { body: { enabled } });
  await turnTo(false);
  const statuses = receiver.at(pathOf(webhook)).map(({ id }) => (id === failing.id ? 503 : 204));
  for (const [at, answer] of answers.entries()) answer(statuses[at] ?? 204);
  const told = async () =>
    (await deliveriesOf(webhook)).map(({ event_id, status, last_status, next_attempt_at }) => [
      event_id,
      status,
      last_status,
      next_attempt_at,
    ]);
  await until(async () => (await told()).filter(([, , status]) => status !== null).length === 2);
  expect(await told()).toEqual([
    [behind.id, 'pending', null, null],
    [taken.id, 'delivered', 204, null],
    [failing.id, 'pending', 503, null],
  ]);
  receiver.answer = () => 204;
  await turnTo(true);
  await until(async () => (await deliveriesOf(webhook)).every(({ status }) => status === 'delivered'));
});

test('a webhook that accepted one of several simultaneous deliveries is not failing', async () => {
  const webhook = await create({ event_types: ['workflow.*'] });
  await happen([turn('/v1/sites/o'), turn('/v1/sites/p')]);
  await until(async () => (await deliveriesOf(webhook)).length === 2);
  await api.rows(`UPDATE webhooks SET failing_since = now() - interval '6 days' WHERE id = $1`, [webhook.id]);
  const [refused, taken] = (await deliveriesOf(webhook)).map(({ id }) => ({ id, attempts: 0, isGone: false }));
  if (refused === undefined || taken === undefined) throw new Error('two deliveries were seen');
  const database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
  const ended = [
    { ...refused, status: 503, error: 'It answered 503.', retrySeconds: 5 },
    { ...taken, status: 204, error: null, retrySeconds: null },
  ];
  expect(await settleDeliveries(database, webhook.id, ended)).toBeNull();
  await database.close();
  expect(await api.rows('SELECT failing_since, disabled_at FROM webhooks WHERE id = $1', [webhook.id])).toEqual([
    { failing_since: null, disabled_at: null },
  ]);
});

test('no event waits behind a delivery that has ended, whenever the event comes', async () => {
  startSender({ everyMs: 1 });
  const webhook = await create({ event_types: ['workflow.*'] });
  const database = openDatabase(api.postgres.url, { max: 4, applicationName: 'test' });
  const events = Array.from({ length: 150 }, () => turn('/v1/sites/j'));
  for (const event of events) {
    await database.transaction((tx) =>
      storeEvents(tx, [{ ...event, type: 'workflow.failed', mode: 'live', workflow: null }]),
    );
    await sequenceEvents(database);
  }
  const arrived = () => new Set(receiver.at(pathOf(webhook)).map(({ id }) => id));
  await until(() => arrived().size === events.length);
  expect(arrived()).toEqual(new Set(events.map(({ id }) => id)));
  await database.close();
});

test('an event that waits behind a purged event is sent', async () => {
  const webhook = await create({ event_types: ['workflow.*'] });
  const [old, waiting] = [turn('/v1/sites/i'), turn('/v1/sites/i')];
  await happen([old, waiting]);
  await until(async () => (await deliveriesOf(webhook)).length === 2);
  await api.rows(`UPDATE events SET at = now() - interval '31 days' WHERE id = $1`, [old.id]);
  const database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
  await purgeEvents(database, 1_000);
  await database.close();
  startSender();
  await until(() => receiver.at(pathOf(webhook)).length > 0);
  expect(receiver.at(pathOf(webhook)).map(({ id }) => id)).toEqual([waiting.id]);
});

test('a webhook is switched off after five days of failure or at once by 410, which is an event', async () => {
  startSender();
  const [tired, gone] = [
    await create({ event_types: ['workflow.failed'] }),
    await create({ event_types: ['workflow.succeeded'] }),
  ];
  await api.rows(`UPDATE webhooks SET failing_since = now() - interval '6 days' WHERE id = $1`, [tired.id]);
  receiver.answer = ({ path }) => (path === pathOf(gone) ? 410 : 503);
  await happen([turn('/v1/sites/e', 'workflow.failed'), turn('/v1/sites/e')]);
  await until(
    async () => ![await get(tired), await get(gone)].some((webhook) => (webhook as WebhookWithSecret).enabled),
  );
  expect([await get(tired), await get(gone)]).toMatchObject([
    { disabled_reason: 'failures' },
    { disabled_reason: 'gone' },
  ]);
  const told = async () =>
    (await api.call(root.caller, 'GET', '/v1/events?type=webhook.disable')).json as { data: Event[] };
  await until(async () => (await told()).data.length === 2);
});

test('a secret is shown once and to a repeat; after a rotation both sign until the grace time ends', async () => {
  startSender();
  const body = { url: receiver.url('/rotated'), event_types: ['workflow.*'] };
  const [first, repeat] = [1, 2].map(() =>
    api.call(root.caller, 'POST', '/v1/webhooks', { body, idempotencyKey: 'one' }),
  );
  const webhook = (await first)?.json as WebhookWithSecret;
  expect((await repeat)?.text).toBe((await first)?.text);
  const rotate = (grace: number) =>
    api.call(root.caller, 'POST', `/v1/webhooks/${webhook.id}/rotate-secret`, { body: { grace_seconds: grace } });
  const second = (await rotate(3_600)).json as WebhookWithSecret;
  const isSignedBy = (secret: string, message: Received | undefined): boolean => {
    try {
      new Webhook(secret).verify(message?.body ?? '', message?.headers ?? {});
      return true;
    } catch {
      return false;
    }
  };
  await happen([turn('/v1/sites/f')]);
  await until(() => receiver.at('/rotated').length === 1);
  expect([webhook, second].map(({ secret }) => isSignedBy(secret, receiver.at('/rotated')[0]))).toEqual([true, true]);
  const third = (await rotate(0)).json as WebhookWithSecret;
  await happen([turn('/v1/sites/f')]);
  await until(() => receiver.at('/rotated').length === 2);
  expect([webhook, second, third].map(({ secret }) => isSignedBy(secret, receiver.at('/rotated')[1]))).toEqual([
    false,
    false,
    true,
  ]);
  const tables = ['webhooks', 'webhook_deliveries', 'idempotency_records', 'events', 'audit_log'];
  for (const table of tables) {
    const rows = JSON.stringify(await api.rows(`SELECT to_jsonb(t)::text AS row FROM ${table} t`));
    for (const { secret } of [webhook, second, third]) expect(rows).not.toContain(secret.replace('whsec_', ''));
  }
});

test('a test event reaches only its webhook, whatever types the webhook has', async () => {
  startSender();
  const [meant, other] = [await create({ event_types: ['card.create'] }), await create()];
  const answer = await api.call(root.caller, 'POST', `/v1/webhooks/${meant.id}/test`);
  expect(answer.status).toBe(200);
  await until(() => receiver.at(pathOf(meant)).length === 1);
  expect(receiver.at(pathOf(meant))[0]?.event).toEqual(answer.json);
  await wait(200);
  expect(receiver.at(pathOf(other)).map(({ event }) => event.type)).not.toContain('webhook.test');
});

test('an organisation whose receivers hang takes only its share, and other organisations’ events arrive', async () => {
  // `answerMs` is so long that no hanging receiver is given up during the test.
  startSender({ most: 6, mostOfOrg: 4, answerMs: 600_000, leaseSeconds: 900 });
  const [slow, stranger] = [await create(), await api.bootstrap()];
  const quick = await create({}, stranger);
  // Only answers that hang from now on are counted, because earlier answers may have ended already.
  const hanging: string[] = [];
  receiver.answer = ({ path, id }) => {
    if (path !== pathOf(slow)) return 204;
    hanging.push(id);
    return 'hang';
  };
  await happen(Array.from({ length: 30 }, () => turn(`/v1/sites/${uuidv7()}`)));
  await until(() => hanging.length >= 4);
  const event = turn('/v1/sites/g', 'workflow.succeeded', stranger.caller.orgId);
  await happen([event]);
  await until(() => receiver.at(pathOf(quick)).some(({ id }) => id === event.id));
  expect(hanging).toHaveLength(4);
  receiver.hangUp();
}, 60_000);

test('organisations with a backlog and hanging receivers leave the next free place to another one', async () => {
  const strangers = [await api.bootstrap(), await api.bootstrap(), await api.bootstrap()].sort((a, b) =>
    a.caller.orgId < b.caller.orgId ? -1 : 1,
  );
  const webhooks = await Promise.all(strangers.map((key) => create({ event_types: ['workflow.*'] }, key)));
  const last = strangers[2] ?? root;
  const quickPath = pathOf(webhooks[2] ?? { url: '' });
  receiver.answer = ({ path }) => (path === quickPath ? 204 : 'hang');
  for (const { caller } of strangers.slice(0, 2))
    await happen(Array.from({ length: 40 }, () => turn(`/v1/sites/${uuidv7()}`, 'workflow.succeeded', caller.orgId)));
  startSender({ most: 4, mostOfOrg: 2, answerMs: 500 });
  await until(() => receiver.received.length >= 4);
  const event = turn('/v1/sites/m', 'workflow.succeeded', last.caller.orgId);
  await happen([event]);
  await until(() => receiver.received.some(({ id }) => id === event.id));
  const others = receiver.received.filter(({ path }) =>
    webhooks.slice(0, 2).some((webhook) => pathOf(webhook) === path),
  );
  expect(new Set(others.map(({ id }) => id)).size).toBeLessThan(80);
  receiver.hangUp();
});

test.each([
  'https://127.0.0.1/',
  'https://127.1/',
  'https://127.0.0.1./',
  'https://10.1.2.3/hook',
  'https://172.31.255.255/',
  'https://192.168.1.1:8443/',
  'https://100.64.0.1/',
  'https://169.254.169.254/latest/meta-data',
  'https://0.0.0.0/',
  'https://0/',
  'https://224.0.0.1/',
  'https://255.255.255.255/',
  'https://2130706433/',
  'https://017700000001/',
  'https://0177.0.0.1/',
  'https://0x7f.1/',
  'https://0x7f000001/',
  'https://%31%32%37.0.0.1/',
  'https://１２７.０.０.１/',
  'https://127。0。0。1/',
  'https://[::]/',
  'https://[::1]/',
  'https://[0:0:0:0:0:0:0:1]/',
  'https://[fd00::1]/',
  'https://[fe80::1]/',
  'https://[ff02::1]/',
  'https://[::ffff:10.0.0.1]/',
  'https://[::ffff:a00:1]/',
  'https://[::127.0.0.1]/',
  'https://[64:ff9b::127.0.0.1]/',
  'https://[2002:7f00:1::]/',
  'https://[2001:0:7f00:1::]/',
  'https://[2001:db8::1]/',
  'http://example.com/',
])('a webhook to %s is refused, and one whose name leads there gets nothing', async (url) => {
  const answer = await api.call(root.caller, 'POST', '/v1/webhooks', { body: { url } });
  expect(refusalOf(answer)).toBe('422 webhook_url_refused');
  const webhook = await create();
  expect(refusalOf(await api.call(root.caller, 'PATCH', `/v1/webhooks/${webhook.id}`, { body: { url } }))).toBe(
    '422 webhook_url_refused',
  );
});

test('a name that leads into a private network is not called; the delivery tells why, not the address', async () => {
  startSender({ allowed: new Set(), pauses: [] });
  const { port } = new URL(receiver.url('/'));
  const webhook = await create({ url: `https://localhost:${port}/private`, event_types: ['workflow.*'] });
  await happen([turn('/v1/sites/h')]);
  await until(async () => (await deliveriesOf(webhook)).some(({ status }) => status === 'failed'));
  expect((await deliveriesOf(webhook))[0]?.last_error).toBe(
    'It leads to an address that is not of the public internet.',
  );
  expect(receiver.at('/private')).toEqual([]);
});

test('an organisation has twenty webhooks at most, also when two calls come at once', async () => {
  for (let count = 0; count < 19; count += 1) await create();
  const url = receiver.url('/last');
  const answers = await Promise.all(
    [1, 2, 3].map(() => api.call(root.caller, 'POST', '/v1/webhooks', { body: { url } })),
  );
  expect(answers.map(({ status }) => String(status)).sort()).toEqual(['201', '422', '422']);
});

test('workers that are killed again and again lose no event and keep the order of each resource', async () => {
  const environment = {
    PATH: process.env['PATH'],
    DATABASE_URL: api.postgres.url,
    WEBHOOK_SECRET: api.secrets.webhook,
    WEBHOOK_LEASE_SECONDS: '1',
    DRYDOCK_WEBHOOK_ALLOW: `127.0.0.1:${receiver.port}`,
  };
  const startWorker = () =>
    spawn(process.execPath, [path.join(keys.dir, 'dist/worker.js')], { env: environment, stdio: 'ignore' });
  const webhook = await create({ event_types: ['workflow.*'] });
  const events = Array.from({ length: 120 }, (_, index) => turn(`/v1/sites/${index % 8}`));
  await happen(events);
  const taken = () => new Set(receiver.at(pathOf(webhook)).map(({ id }) => id));
  for (const share of [5, 30, 60, 90]) {
    const worker = startWorker();
    await until(() => taken().size >= share);
    worker.kill('SIGKILL');
    await once(worker, 'exit');
  }
  expect(taken().size).toBeLessThan(events.length);
  const last = startWorker();
  await until(
    async () =>
      (await deliveriesOf(webhook)).every(({ status }) => status === 'delivered') && taken().size === events.length,
  );
  last.kill('SIGKILL');
  for (let site = 0; site < 8; site += 1) {
    const ids = receiver
      .at(pathOf(webhook))
      .flatMap(({ id, event }) => (event.resource === `/v1/sites/${site}` ? [id] : []));
    expect([...new Set(ids)]).toEqual(
      events.filter(({ resource }) => resource === `/v1/sites/${site}`).map(({ id }) => id),
    );
  }
}, 120_000);
