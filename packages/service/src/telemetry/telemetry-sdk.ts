import { setTimeout as wait } from 'node:timers/promises';
import { type ContextManager, context, type Span, SpanStatusCode } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { RuntimeNodeInstrumentation } from '@opentelemetry/instrumentation-runtime-node';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { envDetector, hostDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  createAllowListAttributesProcessor,
  type MetricProducer,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { core, NodeSDK, tracing } from '@opentelemetry/sdk-node';
import { PrismaInstrumentation } from '@prisma/instrumentation';
import {
  type ContinuedTraces,
  createContinuedTraces,
  createRequestTraces,
  ForetoldIds,
  RequestDurations,
  type RequestTraces,
} from './request-traces';
import './log-context';
import { createSafeExporter } from './safe-spans';
import { createSampling, type Sampling, type SamplingOptions } from './sampling';
import { isFullDetail, isQuickDetail, nameOfCall } from './spans';

/**
 * The limits of sending spans, so that a dead or slow collector costs little. Memory holds at most 2,048 spans, and
 * further spans are dropped. At most two requests of 3 s each are sent at a time. Spans are sent in the background, so
 * a served request never waits for the collector. OpenTelemetry's own variables override these numbers, except for the
 * two requests.
 */
const exportLimits = () => ({
  maxQueueSize: setting('OTEL_BSP_MAX_QUEUE_SIZE', 2_048),
  maxExportBatchSize: setting('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
  scheduledDelayMillis: setting('OTEL_BSP_SCHEDULE_DELAY', 5_000),
  exportTimeoutMillis: setting('OTEL_BSP_EXPORT_TIMEOUT', exportTimeoutMs),
});
const senderLimits = () => ({
  timeoutMillis: setting('OTEL_EXPORTER_OTLP_TIMEOUT', exportTimeoutMs),
  concurrencyLimit: 2,
});
const exportTimeoutMs = 3_000;
/** A number from the environment. A value that is 0 or not a number counts as not set. */
const setting = (name: string, fallback: number): number => Number(process.env[name]) || fallback;
const flushMs = 2_000;

/** Whether a request is a probe. Probes come every second, and their traces are useless. */
const isProbe = (url: string | undefined): boolean => url === '/healthz' || url === '/readyz';

/**
 * Whether a span is a statement that only begins, ends or sets up a transaction, such as BEGIN, COMMIT or SET LOCAL,
 * and has not failed. Such spans are sent only with full detail.
 */
const isFrame = ({ attributes, status }: tracing.ReadableSpan): boolean =>
  status.code !== SpanStatusCode.ERROR &&
  /^(?:begin|commit|rollback|savepoint|release|set local)\b/i.test(String(attributes['db.query.text'] ?? ''));

/** Names a span by its path, because the instrumentation knows only the method. */
function nameCall(span: Span, method: string | undefined, path: string | undefined): void {
  const name = nameOfCall(method ?? '', path ?? '');
  if (name !== undefined) span.updateName(name);
}

/** Traces statements, but not pools, whose connections `database/pool` counts. */
class StatementInstrumentation extends PgInstrumentation {
  protected override init() {
    return super.init().filter(({ name }) => name !== 'pg-pool');
  }
}

/**
 * The instrumentations. None records headers, bodies or values of statements, so tokens and idempotency keys are in no
 * span. A statement has one span, which pg's instrumentation makes. Unless `TRACE_DETAIL` is `full`, Prisma,
 * connections and Redis have no spans, and a call outside a trace begins no trace.
 */
const instrumentations = () => [
  new HttpInstrumentation({
    ignoreIncomingRequestHook: (request) => isProbe(request.url),
    headersToSpanAttributes: {},
    requestHook: (span, request) => nameCall(span, request.method, 'path' in request ? request.path : request.url),
    requireParentforOutgoingSpans: !isFullDetail,
  }),
  new UndiciInstrumentation({
    requireParentforSpans: !isFullDetail,
    requestHook: (span, { method, path }) => nameCall(span, method, path),
  }),
  new StatementInstrumentation({
    requireParentSpan: true,
    enhancedDatabaseReporting: false,
    ignoreConnectSpans: !isFullDetail,
  }),
  ...(isFullDetail ? [new PrismaInstrumentation(), redisInstrumentation()] : []),
  // Its timer measures the delay of the event loop. The default of 10 ms costs each process 0.5 % of a core.
  new RuntimeNodeInstrumentation({ monitoringPrecision: 50 }),
];

const redisInstrumentation = () =>
  new IORedisInstrumentation({ requireParentSpan: true, dbStatementSerializer: (command) => command });

/**
 * Removes the names of customers' databases and storages from metrics. The names are private, and each name would be a
 * series of its own for as long as the process lives.
 */
const views = Object.entries({
  'http.client.request.duration': ['http.request.method', 'http.response.status_code', 'error.type'],
  'db.client.operation.duration': ['db.operation.name', 'error.type'],
}).map(([instrumentName, allowed]) => ({
  instrumentName,
  attributesProcessors: [createAllowListAttributesProcessor(allowed)],
}));

export interface SdkOptions {
  /** The address of an OTLP/HTTP collector for spans. With null no spans are recorded. */
  tracesUrl: string | null;
  /** The address of an OTLP/HTTP collector for metrics. With null no metrics are sent. */
  metricsUrl: string | null;
  /**
   * The address at which `/metrics` is served for Prometheus, to everybody who reaches the port. With null it is not
   * served.
   */
  metrics: { port: number; host: string } | null;
  serviceName: string;
  serviceVersion: string;
  /** The environment, such as `production` or `development`. */
  environment: string;
  sampling: SamplingOptions;
}

function tracesTo(url: string | null, sampling: Sampling) {
  if (url === null) return { spanProcessors: [], sampler: new tracing.AlwaysOffSampler() };
  const traces = new OTLPTraceExporter({ url, ...senderLimits() });
  const batches = new tracing.BatchSpanProcessor(createSafeExporter(traces), exportLimits());
  const readable: tracing.SpanProcessor = isFullDetail
    ? batches
    : {
        onStart: (span, context) => batches.onStart(span, context),
        onEnd: (span) => {
          if (!isFrame(span) && !isQuickDetail(span)) batches.onEnd(span);
        },
        forceFlush: () => batches.forceFlush(),
        shutdown: () => batches.shutdown(),
      };
  return { spanProcessors: [sampling.processor(readable)], sampler: sampling.sampler };
}

function metricsTo(url: string | null, metrics: SdkOptions['metrics'], metricProducers: MetricProducer[]) {
  const sent = (to: string) =>
    new PeriodicExportingMetricReader({
      exporter: new OTLPMetricExporter({ url: to, ...senderLimits() }),
      metricProducers,
      exportIntervalMillis: setting('OTEL_METRIC_EXPORT_INTERVAL', 15_000),
      exportTimeoutMillis: setting('OTEL_METRIC_EXPORT_TIMEOUT', exportTimeoutMs),
    });
  return [
    ...(url === null ? [] : [sent(url)]),
    ...(metrics === null
      ? []
      : [new PrometheusExporter({ ...metrics, metricProducers, withoutScopeInfo: true }, tellTaken(metrics.port))]),
  ];
}

/**
 * Reports that `/metrics` cannot be served, for example because the port is taken. The process continues without it.
 */
const tellTaken = (port: number) => (error: unknown) => {
  if (error instanceof Error) process.stderr.write(`/metrics cannot be served at port ${port}: ${error.message}\n`);
};

export function startSdk(options: SdkOptions): {
  stop(): Promise<void>;
  beginTraces(): RequestTraces;
  continueTraces(): ContinuedTraces;
} {
  const sampling = createSampling(options.sampling);
  const ids = new ForetoldIds();
  const durations = new RequestDurations();
  const own = instrumentations();
  const sdk = new NodeSDK({
    // With null the SDK keeps the context manager of `log-context`. The types of the SDK omit null.
    contextManager: null as unknown as ContextManager,
    // Baggage is not passed on, because no process of Drydock uses it, and a caller could send anything in it.
    textMapPropagator: new core.W3CTraceContextPropagator(),
    idGenerator: ids,
    resource: resourceFromAttributes({
      'service.name': options.serviceName,
      'service.version': options.serviceVersion,
      'service.namespace': 'drydock',
      'deployment.environment.name': options.environment,
      'process.pid': process.pid,
    }),
    // OTEL_RESOURCE_ATTRIBUTES overrides the attributes above. The detector of the process is left out, because it
    // would send the whole command line.
    resourceDetectors: [envDetector, hostDetector],
    ...tracesTo(options.tracesUrl, sampling),
    metricReaders: metricsTo(options.metricsUrl, options.metrics, [durations]),
    views,
    logRecordProcessors: [],
    instrumentations: own,
  });
  sdk.start();
  const flush = (): Promise<unknown> => sdk.shutdown().catch(() => undefined);
  return {
    beginTraces: () => {
      sampling.beginsHere();
      // Only the instrumentation of the runtime stays on. The other instrumentations would trace each request and each
      // of its calls a second time.
      for (const each of own) if (!(each instanceof RuntimeNodeInstrumentation)) each.disable();
      // The gateway does not need OpenTelemetry's current context. While a context manager is in use, Node follows each
      // promise and each socket, at a cost of a tenth of a request.
      context.disable();
      return createRequestTraces(ids, durations, options.tracesUrl === null ? null : options.sampling);
    },
    continueTraces: () => {
      for (const each of own) {
        if (!(each instanceof HttpInstrumentation)) continue;
        // A service makes the spans of its requests itself. An instrumentation reads this setting when it is enabled.
        each.disable();
        each.setConfig({ ...each.getConfig(), disableIncomingRequestInstrumentation: true });
        each.enable();
      }
      // Statements are measured only within a span. So every request has a span even if only metrics are sent.
      const isFull = isFullDetail || options.tracesUrl === null;
      return createContinuedTraces(durations, { slowMs: options.sampling.slowMs, isFull });
    },
    stop: async () => {
      await Promise.race([flush(), wait(flushMs, undefined, { ref: false })]);
    },
  };
}
