/** @processes */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { findFreePort } from '@drydock/process';
import { type ChildService, startChildService } from '../../test/child-service';
import { startTestDatabase, type TestDatabase } from '../../test/postgres';

const telemetry = path.join(__dirname, '../../dist/telemetry/telemetry.js');

let db: TestDatabase;
let collector: Server;
const received: Array<{ path: string; body: Buffer; token: unknown }> = [];
beforeAll(async () => {
  db = await startTestDatabase('CREATE TABLE things (id uuid PRIMARY KEY, name text NOT NULL)');
  collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const plain = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
      received.push({ path: request.url ?? '', body: plain, token: request.headers['x-collector-token'] });
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  collector.closeAllConnections();
  collector.close();
  await db.close();
});

const start = (otlp: Record<string, string>): Promise<ChildService> =>
  startChildService({ DATABASE_URL: db.url, SERVICE_NAME: 'kit-test', ...otlp });
const stop = async (service: ChildService): Promise<number | string> => {
  service.child.kill('SIGTERM');
  return service.gone;
};
const endpointOf = (): string => `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
const incoming = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: Array<{ key: string; value: Record<string, unknown> }>;
}
const spans = (): Span[] =>
  received
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(({ body }) => JSON.parse(body.toString()).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap((scope: { spans: Span[] }) => scope.spans);

test('a request is one trace: the gateway’s, our server span, its SQL; the answer and the log carry its id, and no secret is in it', async () => {
  const service = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpointOf() });
  const idempotencyKey = `raw-${randomUUID()}`;
  const answer = await service.post('traced', { traceparent: incoming, idempotencyKey });
  expect(answer.status).toBe(201);
  expect(await stop(service)).toBe(0);
  const trace = spans().filter(({ traceId }) => traceId === '0af7651916cd43dd8448eb211c80319c');
  const server = trace.find(({ parentSpanId }) => parentSpanId === 'b7ad6b7169203331');
  expect(server).toMatchObject({ kind: 2, name: 'POST /v1/things/{name}' });
  expect(answer.headers['traceparent']).toBe(`00-${server?.traceId}-${server?.spanId}-01`);
  expect(trace.some(({ name, parentSpanId }) => name.startsWith('pg.query') && parentSpanId !== undefined)).toBe(true);
  expect(service.lines.find(({ msg }) => msg === 'request')).toMatchObject({ trace_id: server?.traceId });
  const everything = received.map(({ body }) => body.toString()).join('\n');
  expect(everything).toContain('kit-test');
  for (const secret of [idempotencyKey, 'eyJ', 'Bearer']) expect(everything).not.toContain(secret);
  expect(received.some(({ path }) => path === '/v1/metrics')).toBe(true);
});

test('of a read that the gateway does not send, the service sends one span if it fails or is slow; each is counted and its log line names the trace', async () => {
  const before = spans().length;
  const port = await findFreePort();
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: endpointOf(), OTEL_EXPORTER_PROMETHEUS_PORT: String(port) };
  const [traceId, parentSpanId] = ['1af7651916cd43dd8448eb211c80319c', 'c7ad6b7169203331'];
  const unsent = `00-${traceId}-${parentSpanId}-00`;
  const service = await start(environment);
  const answers = [];
  for (const [name, traceparent] of [
    ['quick', unsent],
    ['broken', unsent],
    ['sent', incoming],
  ] as const)
    answers.push(await service.get(name, { traceparent }));
  expect(answers.map(({ status }) => status)).toEqual([200, 500, 200]);
  expect(answers[0]?.headers['traceparent']).toBe(unsent);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counts = [...text.matchAll(/^http_server_request_duration_count\{(.*)\} (\d+)$/gm)];
  const byStatus = counts.map(([, labels = '', count]) => [/status_code="(\d+)"/.exec(labels)?.[1], count]);
  expect(Object.fromEntries(byStatus)).toEqual({ 200: '2', 500: '1' });
  expect(await stop(service)).toBe(0);
  const ofRead = spans()
    .slice(before)
    .filter((span) => span.traceId === traceId);
  expect(ofRead).toMatchObject([{ name: 'GET /v1/things/{name}', kind: 2, parentSpanId }]);
  const lines = service.lines.filter(({ msg }) => msg === 'request');
  expect(lines.map(({ trace_id }) => trace_id)).toEqual([traceId, traceId, '0af7651916cd43dd8448eb211c80319c']);

  const slow = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpointOf(), TRACE_SLOW_MS: '0' });
  const earlier = spans().length;
  expect((await slow.get('slow', { traceparent: unsent })).status).toBe(200);
  expect(await stop(slow)).toBe(0);
  expect(spans().slice(earlier)).toMatchObject([{ traceId, parentSpanId, name: 'GET /v1/things/{name}' }]);
});

test('OpenTelemetry’s own variables say where spans go, with what headers and as whose, and the resource says what it is', async () => {
  const before = received.length;
  const service = await start({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpointOf()}/elsewhere`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-token=theirs',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging',
    DRYDOCK_VERSION: '1.2.3',
  });
  expect((await service.post('elsewhere')).status).toBe(201);
  expect(await stop(service)).toBe(0);
  const own = received.slice(before);
  expect(new Set(own.map((request) => [request.path, request.token].join()))).toEqual(new Set(['/elsewhere,theirs']));
  const { resource } = JSON.parse(own[0]?.body.toString() ?? '').resourceSpans[0];
  const attributes = Object.fromEntries(
    resource.attributes.map(({ key, value }: Span['attributes'][number]) => [key, value['stringValue']]),
  );
  expect(attributes).toMatchObject({
    'service.name': 'kit-test',
    'service.namespace': 'drydock',
    'service.version': '1.2.3',
    'deployment.environment.name': 'staging',
  });
});

test('a process that is told to send nothing records nothing', async () => {
  const before = received.length;
  const nothing = {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpointOf(),
    OTEL_TRACES_EXPORTER: 'none',
    OTEL_METRICS_EXPORTER: 'none',
  };
  for (const how of [nothing, { OTEL_EXPORTER_OTLP_ENDPOINT: endpointOf(), OTEL_SDK_DISABLED: 'true' }]) {
    const service = await start(how);
    expect((await service.post('nothing')).headers['traceparent']).toBeUndefined();
    expect(await stop(service)).toBe(0);
  }
  expect(received.length).toBe(before);
});

test('of statements with passwords, of errors and of URLs nothing secret leaves, whoever wrote the span', async () => {
  const script = `
    const { trace } = require('@opentelemetry/api');
    const pg = require('pg');
    const { stopTelemetry } = require('${telemetry}');
    trace.getTracer('test').startActiveSpan('hunter', async (span) => {
      const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
      await client.connect();
      const refused = () => undefined;
      await client.query("create role nobody login password 'hunter2'").catch(refused);
      await client.query("do $$ begin execute 'alter role nobody password ''hunter2'''; end $$").catch(refused);
      await client.query("select 'hunter2'");
      await client.query("select 1 where 'hunter2' = $1::text", ['hunter2']);
      await client.end();
      await fetch('${endpointOf()}/not-there?X-Amz-Signature=hunter2').catch(() => undefined);
      span.recordException(new Error("alter role x password 'hunter2' failed for " + process.env.SERVICE_SECRET));
      span.setAttribute('anything', 'postgresql://a:hunter2@h/d');
      span.setStatus({ code: 2, message: 'password=hunter2' });
      span.end();
      await stopTelemetry();
    });`;
  const secret = 'a1'.repeat(32);
  const env = {
    PATH: process.env['PATH'],
    DATABASE_URL: db.url,
    SERVICE_SECRET: secret,
    SERVICE_NAME: 'hunt',
    OTEL_EXPORTER_OTLP_ENDPOINT: endpointOf(),
  };
  await promisify(execFile)(process.execPath, ['--require', telemetry, '-e', script], { env, cwd: __dirname });
  const everything = received.map(({ body }) => body.toString()).join('\n');
  expect(everything).toContain('create role');
  expect(everything).toContain('anything');
  for (const hidden of ['hunter2', secret]) expect(everything).not.toContain(hidden);
});

test('with a port for it and no collector /metrics is served, no span is recorded, and no series is named after a customer’s database', async () => {
  const port = await findFreePort();
  const service = await start({ OTEL_EXPORTER_PROMETHEUS_PORT: String(port) });
  expect((await service.post('counted', { traceparent: incoming })).status).toBe(201);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(text).toMatch(/^http_server_request_duration_count\{.*http_route="\/v1\/things\/\{name\}".*\} 1$/m);
  expect(text).toMatch(/^db_client_operation_duration_count\{db_operation_name="INSERT"\} 1$/m);
  const [, pool] =
    /^db_client_connection_pending_requests\{db_client_connection_pool_name="(\w+)"\} 0$/m.exec(text) ?? [];
  expect(text).toContain(`db_client_connection_pool_name="${pool}",db_client_connection_state="idle"} 1\n`);
  expect(text).not.toContain('db_namespace');
  expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
  expect(await stop(service)).toBe(0);
});

test('without a collector nothing of the SDK is loaded and no traceparent is answered', async () => {
  const service = await start({});
  const answer = await service.post('untraced', { traceparent: incoming });
  expect([answer.status, answer.headers['traceparent']]).toEqual([201, undefined]);
  expect(await stop(service)).toBe(0);
});

test('a collector that accepts and never answers holds up neither a request nor the exit', async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const service = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
  });
  for (let count = 0; count < 20; count += 1) expect((await service.post('silent')).status).toBe(201);
  const startedMs = Date.now();
  expect(await stop(service)).toBe(0);
  expect(Date.now() - startedMs).toBeLessThan(25_000);
  silent.closeAllConnections();
  silent.close();
});
