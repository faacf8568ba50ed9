/** @processes */
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { timeoutScale } from '@drydock/service/testing/service-api';
import { newKey, secretOf, startService, type TestService } from '../test/fixture';

const home = path.join(__dirname, '..');

/** Starts a gateway as it is deployed, with tracing. Resolves with its address. */
async function startTraced(keysUrl: string, otlpUrl: string, settings: Record<string, string> = { TRACE_READS: '1' }) {
  const environment = {
    PATH: process.env['PATH'] ?? '',
    ...timeoutScale(),
    KEYS_URL: keysUrl,
    KEYS_TOKEN_SECRET: secretOf('keys'),
    OTEL_EXPORTER_OTLP_ENDPOINT: otlpUrl,
    ...settings,
  };
  const child = spawn(process.execPath, ['--require', '@drydock/service/preload', 'dist/server.js'], {
    cwd: home,
    env: environment,
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    const { msg, url } = JSON.parse(line);
    if (msg === 'listening') return { url: String(url), stop: () => child.kill('SIGTERM') && gone };
  }
  throw new Error('the gateway ended');
}

const theirs = '0af7651916cd43dd8448eb211c80319c';
const key = newKey();
let keys: TestService;
let collector: Server;
/** The bodies that the collector received, OTLP in JSON. */
const sent: { path: string; body: string }[] = [];
beforeAll(async () => {
  keys = await startService('keys', new Map([[key.token, key]]));
  collector = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      sent.push({ path: request.url ?? '', body });
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await keys.close();
  collector.closeAllConnections();
  collector.close();
});

test('a client can neither choose the id of a trace, nor turn its recording off, nor add state to it', async () => {
  const gateway = await startTraced(keys.url, `http://127.0.0.1:${(collector.address() as AddressInfo).port}`);
  const response = await fetch(`${gateway.url}/v1/me`, {
    headers: {
      authorization: `Bearer ${key.token}`,
      traceparent: `00-${theirs}-b7ad6b7169203331-00`,
      tracestate: 'theirs=1',
      baggage: 'who=alice',
    },
  });
  await gateway.stop();
  const { headers = {} } = keys.seen.at(-1) ?? {};
  const [, traceId, , flags] = (response.headers.get('traceparent') ?? '').split('-');
  expect([response.status, flags, headers['tracestate'], headers['baggage']]).toEqual([
    200,
    '01',
    undefined,
    undefined,
  ]);
  expect(traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(traceId).not.toBe(theirs);
  expect(headers['traceparent']).toContain(traceId);
});

test('a span and its duration have the route of the request, and the span has the ids of the caller', async () => {
  sent.length = 0;
  const gateway = await startTraced(keys.url, `http://127.0.0.1:${(collector.address() as AddressInfo).port}`);
  const id = crypto.randomUUID();
  await fetch(`${gateway.url}/v1/api-keys/${id}`, {
    headers: { authorization: `Bearer ${key.token}`, 'x-request-id': 'request-of-ours' },
  });
  await gateway.stop();
  const [traces, metrics] = ['/v1/traces', '/v1/metrics'].map((path) =>
    sent
      .filter((one) => one.path === path)
      .map(({ body }) => body)
      .join(),
  );
  expect(traces).toContain('"name":"GET /v1/api-keys/{keyId}"');
  const attributes = {
    'http.route': '/v1/api-keys/{keyId}',
    'drydock.request_id': 'request-of-ours',
    'drydock.org_id': key.orgId,
    'drydock.key_id': key.keyId,
    'drydock.key_prefix': key.token.split('_')[2],
  };
  for (const [name, value] of Object.entries(attributes))
    expect(traces).toContain(`{"key":"${name}","value":{"stringValue":"${value}"}}`);
  expect(metrics).toContain('{"key":"http.route","value":{"stringValue":"/v1/api-keys/{keyId}"}}');
});

interface Sent {
  name: string;
  kind: number;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
}
const spansSent = (): Sent[] =>
  sent
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(({ body }) => JSON.parse(body).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }: { spans: Sent[] }) => spans);

/** With these settings no read is in the traced share, and no request counts as slow, even on a busy machine. */
const neverSlow = { TRACE_READS: '0', TRACE_SLOW_MS: '3600000' };

/**
 * Starts a gateway with these settings, calls it and ends it. `names` are the names of the gateway's spans in the
 * answer's trace, and `all` is the number of all its spans. `flags` are the trace flags that the gateway sent in its
 * answer, and `told` those that it sent to the service.
 */
async function traceOf(settings: Record<string, string>, method: string, path: string) {
  sent.length = 0;
  const gateway = await startTraced(
    keys.url,
    `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    settings,
  );
  const headers = { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' };
  const response = await fetch(gateway.url + path, {
    method,
    headers,
    ...(method === 'GET' ? {} : { body: '{"name":"x","scopes":[]}' }),
  });
  await response.text();
  await gateway.stop();
  const [, traceId, , flags] = (response.headers.get('traceparent') ?? '').split('-');
  const names = spansSent()
    .filter((span) => span.traceId === traceId)
    .map(({ name }) => name);
  return {
    names,
    all: spansSent().length,
    flags,
    told: keys.seen.at(-1)?.headers['traceparent']?.toString().slice(-2),
  };
}

const readPath = '/v1/api-keys';

test('a read outside the share is not sent and its service is told so, and a write is always sent', async () => {
  expect(await traceOf(neverSlow, 'GET', readPath)).toEqual({ names: [], all: 0, flags: '00', told: '00' });
  const write = await traceOf(neverSlow, 'POST', readPath);
  expect([write.flags, write.told]).toEqual(['01', '01']);
  expect(write.names).toEqual([`POST ${readPath}`]);
});

test('a read outside the share is sent if it is slow or fails', async () => {
  expect((await traceOf({ TRACE_READS: '0', TRACE_SLOW_MS: '0' }, 'GET', readPath)).names).toEqual([`GET ${readPath}`]);
  keys.answer = (_request, response) =>
    response.writeHead(500, { 'content-type': 'application/problem+json' }).end('{}');
  const failed = await traceOf(neverSlow, 'GET', readPath);
  keys.answer = (_request, response) =>
    response.writeHead(404, { 'content-type': 'application/problem+json' }).end('{}');
  const missing = await traceOf(neverSlow, 'GET', readPath);
  keys.answer = (_request, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  expect(failed.names).toEqual([`GET ${readPath}`]);
  expect(missing.names).toEqual([]);
});
