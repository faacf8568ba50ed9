import { trace } from '@opentelemetry/api';
import { tracing } from '@opentelemetry/sdk-node';
import { createRequestTraces, type EndedRequest, ForetoldIds, RequestDurations } from './request-traces';

const sent: tracing.ReadableSpan[] = [];
const ids = new ForetoldIds();
beforeAll(() => {
  const keep: tracing.SpanProcessor = {
    onStart: () => undefined,
    onEnd: (span) => void sent.push(span),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
  trace.setGlobalTracerProvider(new tracing.BasicTracerProvider({ spanProcessors: [keep], idGenerator: ids }));
});
beforeEach(() => {
  sent.length = 0;
});

const ended = (about: Partial<EndedRequest> = {}): EndedRequest => ({
  ...{
    method: 'GET',
    route: '/v1/sites',
    status: 200,
    startedMs: performance.now() - 20,
    endedMs: performance.now(),
    isStream: false,
  },
  attributes: () => ({ 'drydock.request_id': 'request' }),
  ...about,
});
const traces = (readShare: number, slowMs = 60_000) =>
  createRequestTraces(ids, new RequestDurations(), { readShare, slowMs });

test('a request that is sent has the very span that whoever was called has been told of', () => {
  const { traceId, traceparent, end } = traces(0).begin('POST');
  end(ended({ method: 'POST' }));
  const [span] = sent;
  expect(traceparent).toBe(`00-${traceId}-${span?.spanContext().spanId}-01`);
  expect(span).toMatchObject({
    name: 'POST /v1/sites',
    attributes: { 'http.route': '/v1/sites', 'drydock.request_id': 'request' },
  });
  expect(span?.parentSpanContext).toBeUndefined();
  const [seconds = 0, nanoseconds = 0] = span?.duration ?? [];
  expect(seconds * 1_000 + nanoseconds / 1e6).toBeGreaterThanOrEqual(19.9);
});

test.each<[string, number, Partial<EndedRequest>, number]>([
  ['a read outside the share is not sent', 0, {}, 0],
  ['a read within the share is sent', 1, {}, 1],
  ['a read that failed is sent', 0, { status: 503 }, 1],
  ['a read that was refused is not sent', 0, { status: 404 }, 0],
  ['a read whose client left is not sent', 0, { status: undefined }, 0],
])('%s', (_what, readShare, about, count) => {
  const { traceparent, end } = traces(readShare).begin('GET');
  end(ended(about));
  expect([sent.length, traceparent?.slice(-2)]).toEqual([count, readShare === 1 ? '01' : '00']);
});

test('a slow read is sent, and a stream, which lasts as long as its client stays, is not slow', () => {
  traces(0, 10)
    .begin('GET')
    .end(ended({ isStream: true }));
  expect(sent).toHaveLength(0);
  traces(0, 10).begin('GET').end(ended());
  expect(sent).toHaveLength(1);
});

test('of many reads at most 50 a second are sent, and all of them with a share of 1', () => {
  const seconds = () => Math.floor(performance.now() / 1_000);
  for (const [share, isCapped] of [
    [0.999, true],
    [1, false],
  ] as const) {
    sent.length = 0;
    const [{ begin }, first] = [traces(share), seconds()];
    for (let count = 0; count < 1_000; count += 1) begin('GET').end(ended());
    if (isCapped) expect(sent.length).toBeLessThanOrEqual(50 * (seconds() - first + 1));
    else expect(sent).toHaveLength(1_000);
  }
});

test('of many reads about the share is sent', () => {
  for (let count = 0; count < 1_000; count += 1) traces(0.5).begin('GET').end(ended());
  expect(sent.length).toBeGreaterThan(400);
  expect(sent.length).toBeLessThan(600);
});

test('a request whose client left before an answer began has no status', () => {
  traces(0)
    .begin('POST')
    .end(ended({ method: 'POST', status: undefined }));
  expect(sent[0]?.attributes['http.response.status_code']).toBeUndefined();
});

const theirs = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const asHeader = `00-${theirs.traceId}-${theirs.spanId}-00`;

test.each<[string, string | undefined, object[]]>([
  ['a link of the request', asHeader, [{ context: { ...theirs, traceFlags: 0, isRemote: true } }]],
  [
    'a link also in a later version',
    `cc-${asHeader.slice(3)}-what-comes`,
    [{ context: { ...theirs, traceFlags: 0, isRemote: true } }],
  ],
  ['no link where there is none', undefined, []],
  ['no link where it names nothing', `00-${'0'.repeat(32)}-${theirs.spanId}-01`, []],
  ['no link where it is none', `${asHeader}x, y`, []],
  ['no link where its version is none', `ff${asHeader.slice(2)}`, []],
])('the caller’s traceparent is %s, and begins no trace of ours', (_what, traceparent, links) => {
  const { traceId, end } = traces(0).begin('POST', traceparent);
  end(ended({ method: 'POST' }));
  expect(sent[0]?.links).toMatchObject(links);
  expect(sent[0]?.links).toHaveLength(links.length);
  expect([sent[0]?.spanContext().traceId, sent[0]?.parentSpanContext]).toEqual([traceId, undefined]);
  expect(traceId).not.toBe(theirs.traceId);
});
