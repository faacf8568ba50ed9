import { setTimeout as wait } from 'node:timers/promises';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { ExpressInstrumentation, ExpressLayerType } from '@opentelemetry/instrumentation-express';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { PinoInstrumentation } from '@opentelemetry/instrumentation-pino';
import { RuntimeNodeInstrumentation } from '@opentelemetry/instrumentation-runtime-node';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { envDetector, hostDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { core, NodeSDK, tracing } from '@opentelemetry/sdk-node';
import { PrismaInstrumentation } from '@prisma/instrumentation';
import { createSafeExporter } from './safe-spans';

/**
 * A collector that is dead or slow costs at most this: 2,048 spans in memory (the rest is dropped), two requests at a time of 3 s each, and no
 * moment of a request, since spans leave by a timer.
 */
const exportLimits = { maxQueueSize: 2_048, maxExportBatchSize: 512, scheduledDelayMillis: 1_000, exportTimeoutMillis: 3_000 };
const senderLimits = { timeoutMillis: 3_000, concurrencyLimit: 2 };
const metricsEveryMs = 15_000;
const flushMs = 2_000;

/** Probes come every second and say nothing. */
const isProbe = (url: string | undefined): boolean => url === '/healthz' || url === '/readyz';

/**
 * No option here records headers, statement values or bodies: tokens and idempotency keys never reach a span. What they
 * do record is stripped once more on its way out (`safe-spans`), whoever wrote it.
 */
const instrumentations = () => [
  new HttpInstrumentation({ ignoreIncomingRequestHook: (request) => isProbe(request.url), headersToSpanAttributes: {} }),
  // It names the route; a span per layer tells nothing that the server span does not.
  new ExpressInstrumentation({
    ignoreLayersType: [ExpressLayerType.MIDDLEWARE, ExpressLayerType.ROUTER, ExpressLayerType.REQUEST_HANDLER],
  }),
  new UndiciInstrumentation(),
  new IORedisInstrumentation({ requireParentSpan: true, dbStatementSerializer: (command) => command }),
  new PgInstrumentation({ requireParentSpan: true, enhancedDatabaseReporting: false }),
  new PrismaInstrumentation(),
  new PinoInstrumentation({ disableLogSending: true }),
  new RuntimeNodeInstrumentation(),
];

/** Starts tracing and metrics towards the OTLP/HTTP `endpoint` (its base, without `/v1/traces`). */
export function startSdk(options: { endpoint: string; serviceName: string }): { stop(): Promise<void>; ignoreIncoming(): void } {
  const base = options.endpoint.replace(/\/+$/, '');
  let ignoresIncoming = false;
  const w3c = new core.W3CTraceContextPropagator();
  const traces = new OTLPTraceExporter({ url: `${base}/v1/traces`, ...senderLimits });
  const sdk = new NodeSDK({
    // Without baggage: nothing of ours carries any, so that whatever came in would be passed on and be somebody else's.
    textMapPropagator: {
      inject: (context, carrier, setter) => w3c.inject(context, carrier, setter),
      extract: (context, carrier, getter) => (ignoresIncoming ? context : w3c.extract(context, carrier, getter)),
      fields: () => w3c.fields(),
    },
    resource: resourceFromAttributes({ 'service.name': options.serviceName, 'process.pid': process.pid }),
    // Without the detector of the process: it sends the whole command line.
    resourceDetectors: [envDetector, hostDetector],
    spanProcessors: [new tracing.BatchSpanProcessor(createSafeExporter(traces), exportLimits)],
    metricReaders: [
      new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter({ url: `${base}/v1/metrics`, ...senderLimits }),
        exportIntervalMillis: metricsEveryMs,
        exportTimeoutMillis: exportLimits.exportTimeoutMillis,
      }),
    ],
    logRecordProcessors: [],
    instrumentations: instrumentations(),
  });
  sdk.start();
  const flush = (): Promise<unknown> => sdk.shutdown().catch(() => undefined);
  return {
    ignoreIncoming: () => {
      ignoresIncoming = true;
    },
    stop: async () => {
      await Promise.race([flush(), wait(flushMs, undefined, { ref: false })]);
    },
  };
}
