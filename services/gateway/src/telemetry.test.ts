/** @processes */
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { timeoutScale } from '@drydock/service/testing/service-api';
import { newKey, secretOf, startService, type TestService } from '../test/fixture';

const home = path.join(__dirname, '..');

/** A gateway as it is deployed, with tracing on; resolves with where it listens. */
async function startTraced(keysUrl: string, otlpUrl: string) {
  const environment = {
    PATH: process.env['PATH'] ?? '',
    ...timeoutScale(),
    KEYS_URL: keysUrl,
    KEYS_TOKEN_SECRET: secretOf('keys'),
    OTEL_EXPORTER_OTLP_ENDPOINT: otlpUrl,
  };
  const child = spawn(process.execPath, ['--require', '@drydock/service/telemetry/telemetry', 'dist/server.js'], {
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
/** What was sent to the collector, as OTLP has it in JSON. */
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

test('a client neither names our traces, nor switches their recording off, nor gets anything of its own into them', async () => {
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
  expect([response.status, flags, headers['tracestate'], headers['baggage']]).toEqual([200, '01', undefined, undefined]);
  expect(traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(traceId).not.toBe(theirs);
  expect(headers['traceparent']).toContain(traceId);
});

test('a request’s span and its duration are named by the route, and the span by whose request it is', async () => {
  sent.length = 0;
  const gateway = await startTraced(keys.url, `http://127.0.0.1:${(collector.address() as AddressInfo).port}`);
  const id = crypto.randomUUID();
  await fetch(`${gateway.url}/v1/api-keys/${id}`, { headers: { authorization: `Bearer ${key.token}`, 'x-request-id': 'request-of-ours' } });
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
  };
  for (const [name, value] of Object.entries(attributes)) expect(traces).toContain(`{"key":"${name}","value":{"stringValue":"${value}"}}`);
  expect(metrics).toContain('{"key":"http.route","value":{"stringValue":"/v1/api-keys/{keyId}"}}');
});
