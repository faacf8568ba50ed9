import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { tracing } from '@opentelemetry/sdk-node';
import { createSampling } from './sampling';
import { type EndedSpan, isQuickDetail, nameOfCall, routineAttribute, streamAttribute, traceForWork } from './spans';

const ids = new tracing.RandomIdGenerator();

function sample(options: { readShare?: number; slowMs?: number } = {}) {
  const sent: tracing.ReadableSpan[] = [];
  const keep: tracing.SpanProcessor = {
    onStart: () => undefined,
    onEnd: (span) => void sent.push(span),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
  const sampling = createSampling({ readShare: 0, slowMs: 60_000, ...options });
  const provider = new tracing.BasicTracerProvider({
    sampler: sampling.sampler,
    spanProcessors: [sampling.processor(keep)],
  });
  const tracer = provider.getTracer('test');
  /** Begins a request as a service receives it: the gateway says that its trace is not sent. */
  const begin = (method: string) => {
    const caller = {
      traceId: ids.generateTraceId(),
      spanId: ids.generateSpanId(),
      traceFlags: TraceFlags.NONE,
      isRemote: true,
    };
    const attributes = { 'http.request.method': method };
    const root = tracer.startSpan(
      method,
      { kind: SpanKind.SERVER, attributes },
      trace.setSpanContext(ROOT_CONTEXT, caller),
    );
    return { root, child: (name: string) => tracer.startSpan(name, {}, trace.setSpan(ROOT_CONTEXT, root)) };
  };
  return { sent, tracer, begin, names: () => sent.map(({ name }) => name) };
}

const failed = { code: SpanStatusCode.ERROR };

test('from the failure on whoever is called is told to send, and what was held is sent with it, marked as sampled', () => {
  const { begin, names, sent } = sample();
  const { root, child } = begin('GET');
  child('before').end();
  expect([root.spanContext().traceFlags, names()]).toEqual([TraceFlags.NONE, []]);
  const failing = child('failing');
  failing.setStatus(failed).end();
  expect(names()).toEqual(['before', 'failing']);
  expect(child('after').spanContext().traceFlags).toBe(TraceFlags.SAMPLED);
  expect(sent.every((span) => span.spanContext().traceFlags === TraceFlags.SAMPLED)).toBe(true);
});

test('a refusal is its caller’s mistake and a stream lasts as long as its client: neither is a reason to send', () => {
  const ofStreams = sample({ slowMs: 0 });
  ofStreams.begin('GET').root.setAttribute(streamAttribute, true).end();
  expect(ofStreams.names()).toEqual([]);
  const ofRefusals = sample();
  ofRefusals.begin('GET').root.setAttribute('http.response.status_code', 404).setStatus(failed).end();
  expect(ofRefusals.names()).toEqual([]);
});

test('reads that never end, and one with spans without end, hold no more than was agreed', () => {
  const { begin, names } = sample();
  const first = begin('GET');
  for (let count = 0; count < 1_000; count += 1) first.child('many').end();
  const reads = Array.from({ length: 2_000 }, () => begin('GET'));
  for (const { child } of reads) for (let count = 0; count < 10; count += 1) child('held').end();
  for (const { root } of [first, ...reads]) root.setStatus(failed).end();
  expect(names().filter((name) => name === 'GET')).toHaveLength(2_001);
  expect(names().filter((name) => name === 'many')).toEqual([]);
  const held = names().filter((name) => name === 'held').length;
  expect(held).toBeGreaterThan(0);
  expect(held).toBeLessThanOrEqual(4_000);
});

test('of much routine about the share is sent, each run whole or not at all', () => {
  const { tracer, names } = sample({ readShare: 0.5 });
  for (let count = 0; count < 1_000; count += 1) {
    const root = tracer.startSpan('run', { attributes: { [routineAttribute]: true } }, ROOT_CONTEXT);
    tracer.startSpan('child', {}, trace.setSpan(ROOT_CONTEXT, root)).end();
    root.end();
  }
  const roots = names().filter((name) => name === 'run').length;
  expect(roots).toBeGreaterThan(400);
  expect(roots).toBeLessThan(600);
  expect(names().filter((name) => name === 'child')).toHaveLength(roots);
});

test('the routine that the clock begins is sent as reads are, wherever it begins: a share of it, and what failed', () => {
  const routine = (options: { readShare?: number }) => {
    const { sent, tracer } = sample(options);
    return {
      sent,
      begin: () => tracer.startSpan('run reconcile', { attributes: { [routineAttribute]: true } }, ROOT_CONTEXT),
    };
  };
  const none = routine({ readShare: 0 });
  none.begin().end();
  expect(none.sent).toHaveLength(0);
  none.begin().setStatus(failed).end();
  expect(none.sent).toHaveLength(1);
  const all = routine({ readShare: 1 });
  all.begin().end();
  expect(all.sent).toHaveLength(1);
});

test('what our own processes deliver by the clock begins no trace that is sent, unless it failed; within a request’s trace it is sent with it', () => {
  const { tracer, names } = sample({ readShare: 1 });
  const deliver = (parent = ROOT_CONTEXT) => {
    const attributes = { 'http.request.method': 'POST', 'url.path': '/internal/events' };
    return tracer.startSpan('delivery', { kind: SpanKind.SERVER, attributes }, parent);
  };
  deliver().end();
  expect(names()).toEqual([]);
  deliver().setStatus(failed).end();
  const request = {
    traceId: ids.generateTraceId(),
    spanId: ids.generateSpanId(),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  };
  deliver(trace.setSpanContext(ROOT_CONTEXT, request)).end();
  expect(names()).toEqual(['delivery', 'delivery']);
});

test.each([
  [
    'PUT',
    '/control/sites/01890000-0000-7000-8000-000000000001/releases/0189abcd?x=1',
    'PUT /control/sites/{id}/releases/{id}',
  ],
  ['POST', '/control/sites/app/switch', 'POST /control/sites/{id}/switch'],
  ['DELETE', '/control/sites/app/releases/initial', 'DELETE /control/sites/{id}/releases/{id}'],
  ['GET', '/v1/servers/42/actions', 'GET /v1/servers/{id}/actions'],
  ['POST', '/internal/verify', 'POST /internal/verify'],
  ['GET', '/a-bucket/our/key', undefined],
  ['GET', '/healthz', undefined],
  ['GET', '', undefined],
])('%s %s is called %s', (method, callPath, name) => expect(nameOfCall(method, callPath)).toBe(name));

describe('in a process that works', () => {
  const ended = (about: Partial<EndedSpan>): EndedSpan => ({
    kind: SpanKind.CLIENT,
    status: { code: SpanStatusCode.UNSET },
    attributes: { 'db.query.text': 'SELECT' },
    duration: [0, 5_000_000],
    ...about,
  });
  const read = { attributes: { 'http.request.method': 'GET' } };

  test('a statement or a read that went well and quickly is a quick detail, in no other process', () => {
    expect([isQuickDetail(ended({})), isQuickDetail(ended(read))]).toEqual([false, false]);
    traceForWork();
    expect([isQuickDetail(ended({})), isQuickDetail(ended(read))]).toEqual([true, true]);
  });

  test.each<[string, Partial<EndedSpan>]>([
    ['slow', { duration: [0, 100_000_000] }],
    ['failed', { status: failed }],
    ['a call that changes something', { attributes: { 'http.request.method': 'PUT' } }],
    ['a step', { kind: SpanKind.INTERNAL, attributes: {} }],
  ])('what is %s is none', (_what, about) => {
    traceForWork();
    expect(isQuickDetail(ended(about))).toBe(false);
  });
});
