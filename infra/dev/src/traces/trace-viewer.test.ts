import { randomBytes } from 'node:crypto';
import { startTraceViewer, type TraceViewer } from './trace-viewer';

let viewer: TraceViewer;
beforeEach(async () => {
  viewer = await startTraceViewer(0);
});
afterEach(() => viewer.close());

const id = (bytes: number): string => randomBytes(bytes).toString('hex');

interface Sent {
  traceId?: string;
  spanId?: string;
  parentSpanId?: string;
  name?: string;
  attributes?: Record<string, string>;
  failed?: boolean;
}

async function send(...spans: readonly Sent[]): Promise<void> {
  const sent = spans.map(
    ({ traceId = id(16), spanId = id(8), name = 'GET /v1/sites', attributes = {}, failed = false, parentSpanId }) => ({
      ...{
        traceId,
        spanId,
        name,
        kind: 2,
        startTimeUnixNano: '1795522878000000000',
        endTimeUnixNano: '1795522878250000000',
      },
      ...(parentSpanId === undefined ? {} : { parentSpanId }),
      attributes: Object.entries(attributes).map(([key, stringValue]) => ({ key, value: { stringValue } })),
      status: failed ? { code: 2 } : {},
    }),
  );
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'gateway' } }] };
  const body = JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans: sent }] }] });
  expect((await fetch(`${viewer.url}/v1/traces`, { method: 'POST', body })).status).toBe(200);
}

const pageAt = async (path: string): Promise<string> => (await fetch(viewer.url + path)).text();

test('a trace is found by its own id and by that of a request or a workflow, and shown as a waterfall', async () => {
  const traceId = id(16);
  const root = id(8);
  await send(
    {
      traceId,
      spanId: id(8),
      parentSpanId: root,
      name: 'run restore_backup',
      attributes: { 'workflow.id': 'the-workflow' },
    },
    { traceId, spanId: root, name: 'POST /v1/restore', attributes: { 'drydock.request_id': 'the-request' } },
  );
  await send({});
  for (const text of [traceId, 'the-workflow', 'the-request']) {
    const page = await pageAt(`/?q=${text}`);
    expect([page.includes(traceId), page.includes('GET /v1/sites')]).toEqual([true, false]);
  }
  const page = await pageAt(`/traces/${traceId}`);
  expect(page.indexOf('run restore_backup')).toBeGreaterThan(page.lastIndexOf('POST /v1/restore'));
  expect(page).toContain('2 spans in 1 processes, 250 ms');
  expect(await pageAt('/?q=nobody')).toContain('No trace holds this id');
});

test('reads make room before what somebody did, and of those the oldest', async () => {
  const kept = { name: 'POST /v1/sites', traceId: id(16) };
  const failed = { name: 'GET /v1/keys', traceId: id(16), failed: true };
  const work = { name: 'run sweep', traceId: id(16) };
  await send(kept, failed);
  for (let sent = 0; sent < 3; sent += 1) await send(...Array.from({ length: 200 }, () => ({})));
  await send(work);
  const page = await pageAt('/');
  expect([kept, failed, work].every(({ traceId }) => page.includes(traceId))).toBe(true);
  expect(page.match(/\/traces\//g)).toHaveLength(300);
  await send(...Array.from({ length: 300 }, () => ({ name: 'POST /v1/sites' })));
  expect(await pageAt('/')).not.toContain(kept.traceId);
});

test('what a span carries is text on the page, never markup', async () => {
  const traceId = id(16);
  await send({ traceId, name: '<script>alert(1)</script>', attributes: { '"><img>': '<b>' } });
  for (const page of [await pageAt('/'), await pageAt(`/traces/${traceId}`), await pageAt('/?q=%22%3E%3Cimg%3E')]) {
    expect(page).not.toMatch(/<script|<img|<b>&lt;|"><img/);
  }
});

test('what is no OTLP is refused with the reason, and a name that is not this machine’s is not served', async () => {
  const refused = await fetch(`${viewer.url}/v1/traces`, { method: 'POST', body: 'nonsense' });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('JSON')]);
  const { port } = new URL(viewer.url);
  const http = await import('node:http');
  const status = await new Promise((resolve) =>
    http.get({ host: '127.0.0.1', port, headers: { host: 'evil.example.com' } }, (answer) =>
      resolve(answer.statusCode),
    ),
  );
  expect(status).toBe(403);
});
