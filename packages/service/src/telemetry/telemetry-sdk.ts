import { setTimeout as wait } from 'node:timers/promises';
import { context, type Span } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { ExpressInstrumentation, ExpressLayerType } from '@opentelemetry/instrumentation-express';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { PinoInstrumentation } from '@opentelemetry/instrumentation-pino';
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
import { createRequestTraces, ForetoldIds, RequestDurations, type RequestTraces } from './request-traces';
import { createSafeExporter } from './safe-spans';
import { createSampling, type Sampling, type SamplingOptions } from './sampling';
import { isFullDetail, isQuickDetail, nameOfCall } from './spans';

/**
 * The most that a dead or slow collector costs: 2,048 spans in memory (the rest is dropped), two requests at a time of
 * 3 s each, and no time of a request, because a timer sends spans. OpenTelemetry's own variables override these
 * numbers.
 */
const exportLimits = () => ({
  maxQueueSize: setting('OTEL_BSP_MAX_QUEUE_SIZE', 2_048),
  maxExportBatchSize: setting('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
  scheduledDelayMillis: setting('OTEL_BSP_SCHEDULE_DELAY', 1_000),
  exportTimeoutMillis: setting('OTEL_BSP_EXPORT_TIMEOUT', exportTimeoutMs),
});
const senderLimits = () => ({
  timeoutMillis: setting('OTEL_EXPORTER_OTLP_TIMEOUT', exportTimeoutMs),
  concurrencyLimit: 2,
});
const exportTimeoutMs = 3_000;
/** A value that is not a number counts as not set. */
const setting = (name: string, fallback: number): number => Number(process.env[name]) || fallback;
const flushMs = 2_000;

/** Probes come every second, and their traces are of no use. */
const isProbe = (url: string | undefined): boolean => url === '/healthz' || url === '/readyz';

/** A part of a transaction's frame: its time belongs to the statements around it. */
const isFrame = ({ attributes }: tracing.ReadableSpan): boolean =>
  /^(?:begin|commit|rollback|savepoint|release|set local)\b/i.test(String(attributes['db.query.text'] ?? ''));

/** Names a span by its path if the instrumentation knows only the method. Express' routes come later and win. */
function nameCall(span: Span, method: string | undefined, path: string | undefined): void {
  const name = nameOfCall(method ?? '', path ?? '');
  if (name !== undefined) span.updateName(name);
}

/**
 * No instrumentation records headers, statement values or bodies, so tokens and idempotency keys never reach a span.
 * All spans are cleaned once more before they are sent (`safe-spans`).
 * A statement has one span, that of pg. The spans of Prisma around it, of connections and of Redis are only for full
 * detail, because a job's own span tells as much. A call without a trace begins none.
 */
const instrumentations = () => [
  new HttpInstrumentation({
    ignoreIncomingRequestHook: (request) => isProbe(request.url),
    headersToSpanAttributes: {},
    requestHook: (span, request) => nameCall(span, request.method, 'path' in request ? request.path : request.url),
    requireParentforOutgoingSpans: !isFullDetail,
  }),
  // This instrumentation only names the route. A span for each layer of Express would add nothing to the server span.
  new ExpressInstrumentation({
    ignoreLayersType: [ExpressLayerType.MIDDLEWARE, ExpressLayerType.ROUTER, ExpressLayerType.REQUEST_HANDLER],
  }),
  new UndiciInstrumentation({
    requireParentforSpans: !isFullDetail,
    requestHook: (span, { method, path }) => nameCall(span, method, path),
  }),
  new PgInstrumentation({
    requireParentSpan: true,
    enhancedDatabaseReporting: false,
    ignoreConnectSpans: !isFullDetail,
  }),
  ...(isFullDetail ? [new PrismaInstrumentation(), redisInstrumentation()] : []),
  new PinoInstrumentation({ disableLogSending: true }),
  new RuntimeNodeInstrumentation(),
];

const redisInstrumentation = () =>
  new IORedisInstrumentation({ requireParentSpan: true, dbStatementSerializer: (command) => command });

/**
 * Leaves out the names of customers' databases and storages: they are the customers' business, and each would be a
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
  /** The address of an OTLP/HTTP collector for spans. Null: none are sent or recorded. */
  tracesUrl: string | null;
  /** The address of an OTLP/HTTP collector for metrics. Null: none are sent. */
  metricsUrl: string | null;
  /** Serves `/metrics` for Prometheus here, to everybody who reaches the port. Null: it does not. */
  metrics: { port: number; host: string } | null;
  serviceName: string;
  serviceVersion: string;
  /** `production`, `development`. */
  environment: string;
  sampling: SamplingOptions;
}

/** The exporter and the sampling of spans. */
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

/** A process whose port is taken runs without metrics on it. */
const tellTaken = (port: number) => (error: unknown) => {
  if (error instanceof Error) process.stderr.write(`/metrics cannot be served at port ${port}: ${error.message}\n`);
};

export function startSdk(options: SdkOptions): { stop(): Promise<void>; beginTraces(): RequestTraces } {
  const sampling = createSampling(options.sampling);
  const ids = new ForetoldIds();
  const durations = new RequestDurations();
  const own = instrumentations();
  const sdk = new NodeSDK({
    // Baggage is left out, because no process of ours uses it and incoming baggage would be passed on unread.
    textMapPropagator: new core.W3CTraceContextPropagator(),
    idGenerator: ids,
    resource: resourceFromAttributes({
      'service.name': options.serviceName,
      'service.version': options.serviceVersion,
      'service.namespace': 'drydock',
      'deployment.environment.name': options.environment,
      'process.pid': process.pid,
    }),
    // OTEL_RESOURCE_ATTRIBUTES overrides these. There is no detector of the process, because it sends the whole command
    // line.
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
      // These instrumentations would trace each request, and each call that is made for it, a second time.
      for (const each of own)
        if (each instanceof HttpInstrumentation || each instanceof UndiciInstrumentation) each.disable();
      // The current context is not needed any more. As long as a context is kept, Node follows each promise and each
      // socket, at a tenth of the cost of a request.
      context.disable();
      return createRequestTraces(ids, durations, options.tracesUrl === null ? null : options.sampling);
    },
    stop: async () => {
      await Promise.race([flush(), wait(flushMs, undefined, { ref: false })]);
    },
  };
}
