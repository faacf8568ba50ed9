/**
 * Checks with which spans traces begin, on a whole stack that starts and creates its demo content.
 *
 * @tier long
 * @processes
 */
import { randomUUID } from 'node:crypto';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import type { Span } from '../traces/otlp';
import { type Collector, startCollector } from './collector';
import { Customer } from './customer';

let collector: Collector;
let stack: TestStack;
jest.setTimeout(900_000);

beforeAll(async () => {
  collector = await startCollector();
  // With TRACE_READS=1 all spans of scheduled work are sent too.
  stack = await startStack({ otlpEndpoint: collector.url, environment: { DRYDOCK_DEMO: 'sites', TRACE_READS: '1' } });
});
afterAll(async () => {
  await stack?.stop();
  collector.close();
});

const isRequest = ({ service, kind, attributes }: Span): boolean =>
  service === 'gateway' && kind === 2 && attributes['http.request.method'] !== undefined;
/** Tells whether the span is the run of a workflow. */
const isWork = ({ name, attributes }: Span): boolean =>
  name.startsWith('run ') && attributes['workflow.id'] !== undefined;

test('a trace begins with a request, a workflow or a schedule, and its spans say what they are', async () => {
  const customer = new Customer(stack.demo.base_url, stack.demo.live_key);
  // A process sends its spans in batches, one after the other. When the spans that the keys service creates for these
  // requests have arrived, its spans of the start have arrived too.
  for (let request = 0; request < 4; request += 1) {
    const body = { name: `after ${request}`, scopes: ['sites.view'] };
    const minted = await customer.call('POST', '/v1/api-keys', body, { 'idempotency-key': randomUUID() });
    const traceId = minted.headers.get('traceparent')?.split('-')[1] ?? '';
    const isThere = (): boolean => collector.spans.some((span) => span.traceId === traceId && span.service === 'keys');
    await until(isThere, { what: 'the spans of a request' });
  }
  const roots = collector.spans.filter(({ parentSpanId }) => parentSpanId === undefined || parentSpanId === '');
  expect(roots.length).toBeGreaterThan(10);
  const others = roots
    .filter((span) => !isRequest(span) && !isWork(span))
    .map(({ service, name }) => `${service}: ${name}`);
  expect([...new Set(others)]).toEqual([]);
  // Only calls to the agent's control API are checked. The spans of visitors' requests have names without a path,
  // because customers choose the paths.
  const isCall = ({ service, kind, attributes }: Span): boolean =>
    service === 'site-host' && kind === 2 && String(attributes['url.path']).startsWith('/control/');
  const calls = collector.spans.filter(isCall);
  expect(calls.length).toBeGreaterThan(0);
  expect(calls.map(({ name }) => name).filter((name) => !/^[A-Z]+ \/control\/sites\/\{id\}/.test(name))).toEqual([]);
});
